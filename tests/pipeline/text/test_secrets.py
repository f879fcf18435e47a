"""Credentials are hidden in whatever they are printed, and nothing else is."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from sweepscope.pipeline.text.secret_columns import hidden_in, hide_frame, hide_series, shortened
from sweepscope.pipeline.text.secrets import MARK, hide, hide_in, shorten
from tests.secret_samples import Sample, samples

LINES = 2_000
LEAST_KINDS = 20
LEAST_RECALL = 0.99
PART = 8
"""So many characters of a credential in a row are as bad as all of it."""

TOKEN = "hf_" + "aB3dE6" * 6

PLAIN = (
    "commit 0123456789abcdef0123456789abcdef01234567",
    "container sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "docker://nvcr.io/nvidia/pytorch:23.10-py3@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "wandb: Run data is saved locally in wandb/run-20260102_030405-a1b2c3d4",
    "wandb: View run at https://wandb.ai/team/project/runs/a1b2c3d4",
    "n1:7:8 [0] NCCL INFO comm 0x55d0c8e2a3b0 rank 0 nranks 8 commId 0x6f9d3a1b2c4d5e6f - Init COMPLETE",
    "GPU-8f4c3e12-9b6d-4a57-8c21-0f9e8d7c6b5a",
    "eos_token='</s>', pad_token: <pad>, bos_token=\"[CLS]\", unk_token ..... <unk>",
    "num_tokens: 4096, max_token=8192, tokens per token: 1.0, time_per_token: 0.0123456789",
    "image_token_id=128256, eos_token_id: 2, pad_token_id ........ 0",
    "token=get_token(), api_key=os.environ['API_KEY'], password=args.password, secret=self.config.secret",
    "HF_TOKEN=$HF_TOKEN WANDB_API_KEY=${WANDB_API_KEY} --hf-token $TOKEN",
    "export WANDB_API_KEY=your_wandb_api_key",
    "hf_token: null, api_key=None, use_auth_token: True, password: '', token ..... None",
    "GOOGLE_APPLICATION_CREDENTIALS=/etc/keys/service-account.json PWD=/home/me/Run1A2b3C4d5E6f",
    "KeyError: 'model.layers.0.self_attn.q_proj.weight', sort_key: loss, cache_key=a1b2c3d4e5f6a7b8c9d0",
    "Invalid API key: not found; unexpected token: }; authentication failed",
    "git@github.com:team/repo.git and https://git@github.com/team/repo and tcp://10.0.0.1:29500",
    "--world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgMywgNCwgNSwgNiwgN119",
    "/lustre/project/llama/checkpoints/global_step1000/mp_rank_00_model_states.pt",
    "tokenizer_type: HuggingFaceTokenizer, hf_config.json, sk-learn-like-names-are-not-keys-at-all",
    "hf_transformers_checkpoint_conversion_of_all_layers.py",
    "PASSED tests; forward pass: 12.3 ms, backward_pass=24.6, first_pass: True, compass=north",
)
"""Lines of training logs that look a little like credentials."""


FORTY_DIGITS = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
SIXTEEN = "kQ7xV2mN9pL4tR8w"

PLACES = (
    *(
        place.format(FORTY_DIGITS)
        for place in (
            "srun --export=ALL,WANDB_API_KEY={0},NCCL_DEBUG=INFO",
            "docker run -e WANDB_API_KEY={0} -e X=1 img",
            "{{'wandb': {{'api_key': '{0}', 'project': 'x'}}}}",
            "wandb.login(key='{0}')",
            "WANDB_API_KEY is set to {0}",
            "wandb: Paste an API key from your profile and hit enter, or press ctrl+c to quit: {0}",
            "++ WANDB_API_KEY={0}",
            "http://host:8888/lab?token={0}",
            "[('WANDB_API_KEY', '{0}'), ('B', '1')]",
            "wandb_api_key -> {0}",
            "setenv WANDB_API_KEY {0}",
            '$env:WANDB_API_KEY = "{0}"',
            "+trainer.logger.wandb.api_key={0}",
            "x-api-key: {0}",
            "token {0} is invalid",
        )
    ),
    *(
        place.format(SIXTEEN)
        for place in (
            "PGPASSWORD={0}",
            "MYSQL_PWD={0}",
            "redis://:{0}@host:6379/0",
            "http_proxy=http://user:{0}@proxy:3128",
            "postgresql://user:{0}/x@host/db",
            "sshpass -p {0} ssh host",
            "host=db user=u password={0} dbname=x",
            "Server=x;Pwd={0};",
            "curl -u me:{0} http://x",
            "['--password', '{0}']",
            "docker login -u x -p {0} nvcr.io",
            "<password>{0}</password>",
            "Cookie: session={0}",
        )
    ),
)
"""Places that `secret_samples` does not have."""


def leaks(sample: Sample, shown: str) -> bool:
    """Whether a part of a sample's credential is still there."""
    size = min(PART, len(sample.secret))
    return any(sample.secret[at : at + size] in shown for at in range(len(sample.secret) - size + 1))


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_at_least_99_of_100_credentials_are_hidden(seed: int) -> None:
    given = samples(LINES, seed)
    shown = hide_series(pl.Series([sample.line for sample in given]))
    missed = [sample for sample, text in zip(given, shown, strict=True) if leaks(sample, text)]
    assert len({sample.kind for sample in given}) >= LEAST_KINDS
    assert len(missed) <= (1 - LEAST_RECALL) * LINES, Counter(sample.kind for sample in missed)
    worst = Counter(sample.kind for sample in missed).most_common(1)
    assert not worst or worst[0][1] <= 3, missed


def test_columns_and_single_texts_agree_and_a_second_pass_changes_nothing() -> None:
    lines = [sample.line for sample in samples(LINES, 14)] + list(PLAIN)
    once = [hide(line) for line in lines]
    assert hide_series(pl.Series(lines)).to_list() == once
    assert [hide(line) for line in once] == once


@pytest.mark.parametrize("line", PLACES)
def test_credentials_are_hidden_in_further_places(line: str) -> None:
    secret = FORTY_DIGITS if FORTY_DIGITS in line else SIXTEEN
    (shown,) = hide_series(pl.Series([line]))
    assert shown == hide(line)
    assert MARK in shown
    assert not any(secret[at : at + PART] in shown for at in range(len(secret) - PART + 1))


@pytest.mark.parametrize("line", PLAIN)
def test_what_is_no_credential_stays(line: str) -> None:
    assert hide(line) == line


def test_the_mark_names_the_kind_and_keeps_the_prefix() -> None:
    assert hide(f"HF_TOKEN={TOKEN}") == "HF_TOKEN=hf_…[hidden: Hugging Face token]"
    assert hide("--wandb_key 0123456789abcdef0123456789abcdef01234567 --lr 1") == "--wandb_key [hidden: W&B key] --lr 1"
    assert hide("https://me:pass%40word1@host/x?page=2") == "https://me:[hidden: password]@host/x?page=2"
    assert hide('{"password": "a b, c", "n": 1}') == '{"password": "[hidden: password]", "n": 1}'


def test_a_text_is_shortened_after_its_credentials_are_hidden() -> None:
    line = f"{'x' * 20} {TOKEN} {'y' * 90}"
    for length in range(20, 60):
        assert "aB3d" not in shorten(line, length)
        assert "aB3d" not in pl.DataFrame({"text": [line]}).select(shortened(pl.col("text"), length)).item()


def test_values_are_judged_by_the_name_in_their_row() -> None:
    frame = pl.DataFrame({"name": ["db_password", "num_gpus", None], "value": ["correct horse", "8", None]})
    assert hide_frame(frame)["value"].to_list() == ["[hidden: password]", "8", None]
    assert hide_in({"rows": [{"hf_token": "abc123def456", "n": 4096}]}) == {
        "rows": [{"hf_token": "[hidden: Hugging Face token]", "n": 4096}]
    }


def test_columns_of_paths_stay_and_clean_frames_are_not_copied() -> None:
    frame = pl.DataFrame({"path": [f"/a/{TOKEN}", "/b"], "text": [f"token {TOKEN}", None], "n": [1, 2]})
    shown = hide_frame(frame, besides=["path"])
    assert shown["path"].equals(frame["path"])
    assert hidden_in(shown["text"]).to_list() == [True, False]
    clean = pl.DataFrame({"text": list(PLAIN)})
    assert hide_frame(clean) is clean
    assert MARK not in "".join(clean["text"])


def test_long_hostile_texts_take_no_long_time() -> None:
    for text in ("token=" * 20_000, "://" + "a:" * 30_000, "-----BEGIN PRIVATE KEY-----" * 3_000, "password " * 9_000):
        hide(text)
