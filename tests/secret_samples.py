"""Made-up credentials in lines as training logs print them, from a seed.

The credentials follow the issuers' documentation (alphabet and length), not the patterns of
`sweepscope.pipeline.text.secret_formats`: each is drawn by chance, none was ever issued.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
B64 = ALNUM + "+/"
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"


@dataclass(frozen=True)
class Sample:
    """A line, the credential in it (without its public prefix), and its kind."""

    kind: str
    line: str
    secret: str


@dataclass(frozen=True)
class Credential:
    """A credential as printed, the part of it that is secret, and names under which it is printed."""

    text: str
    secret: str
    variable: str
    option: str
    is_recognised: bool
    """Whether its format alone tells it: it may stand anywhere."""


def _draw(rng: random.Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def _prefixed(
    prefix: str, alphabet: str, lengths: tuple[int, ...], variable: str, option: str
) -> Callable[[random.Random], Credential]:
    def draw(rng: random.Random) -> Credential:
        secret = _draw(rng, alphabet, rng.choice(lengths))
        return Credential(prefix + secret, secret, variable, option, is_recognised=True)

    return draw


def _named(
    alphabet: str, lengths: tuple[int, ...], variable: str, option: str
) -> Callable[[random.Random], Credential]:
    def draw(rng: random.Random) -> Credential:
        secret = _draw(rng, alphabet, rng.choice(lengths))
        return Credential(secret, secret, variable, option, is_recognised=False)

    return draw


def _openai_legacy(rng: random.Random) -> Credential:
    secret = f"{_draw(rng, ALNUM, 20)}T3BlbkFJ{_draw(rng, ALNUM, 20)}"
    return Credential(f"sk-{secret}", secret, "OPENAI_API_KEY", "--openai_api_key", is_recognised=True)


def _github_fine(rng: random.Random) -> Credential:
    secret = f"{_draw(rng, ALNUM, 22)}_{_draw(rng, ALNUM, 59)}"
    return Credential(f"github_pat_{secret}", secret, "GITHUB_TOKEN", "--github-token", is_recognised=True)


def _slack(rng: random.Random) -> Credential:
    secret = f"{_draw(rng, string.digits, 12)}-{_draw(rng, string.digits, 12)}-{_draw(rng, ALNUM, 24)}"
    return Credential(f"xoxb-{secret}", secret, "SLACK_BOT_TOKEN", "--slack-token", is_recognised=True)


def _anthropic(rng: random.Random) -> Credential:
    secret = f"{_draw(rng, URLSAFE, 93)}AA"
    return Credential(f"sk-ant-api03-{secret}", secret, "ANTHROPIC_API_KEY", "--anthropic-key", is_recognised=True)


def _jwt(rng: random.Random) -> Credential:
    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {
        "sub": _draw(rng, string.digits, 10),
        "iat": rng.randrange(10**9, 2 * 10**9),
        "name": _draw(rng, ALNUM, 9),
    }
    secret = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{_draw(rng, URLSAFE, 43)}"
    return Credential(secret, secret[45:], "SERVICE_JWT_TOKEN", "--jwt-token", is_recognised=True)


def _neptune(rng: random.Random) -> Credential:
    content = {"api_address": "https://app.neptune.ai", "api_url": "https://app.neptune.ai", "api_key": _uuid(rng)}
    secret = base64.b64encode(json.dumps(content).encode()).decode()
    return Credential(secret, secret[40:], "NEPTUNE_API_TOKEN", "--neptune_api_token", is_recognised=True)


def _azure_storage(rng: random.Random) -> Credential:
    secret = base64.b64encode(rng.randbytes(64)).decode()
    return Credential(secret, secret, "AZURE_STORAGE_KEY", "--account-key", is_recognised=True)


def _ngc_legacy(rng: random.Random) -> Credential:
    secret = base64.b64encode(
        f"{_draw(rng, string.ascii_lowercase + string.digits, 26)}:{_uuid(rng)}".encode()
    ).decode()
    return Credential(secret, secret, "NGC_CLI_API_KEY", "--ngc-api-key", is_recognised=False)


def _mlflow_password(rng: random.Random) -> Credential:
    secret = _draw(rng, ALNUM + "!#%^*-_+=.", rng.randint(10, 24))
    return Credential(secret, secret, "MLFLOW_TRACKING_PASSWORD", "--mlflow-password", is_recognised=False)


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


CREDENTIALS: dict[str, Callable[[random.Random], Credential]] = {
    "huggingface": _prefixed("hf_", ALNUM, (34,), "HF_TOKEN", "--hf-token"),
    "wandb": _named(HEX, (40,), "WANDB_API_KEY", "--wandb_key"),
    "wandb_long": _prefixed("wandb_v1_", ALNUM + "_", (77,), "WANDB_API_KEY", "--wandb-api-key"),
    "aws_id": _prefixed("AKIA", BASE32, (16,), "AWS_ACCESS_KEY_ID", "--aws-access-key-id"),
    "aws_temporary_id": _prefixed("ASIA", BASE32, (16,), "AWS_ACCESS_KEY_ID", "--access_key_id"),
    "aws_secret": _named(B64, (40,), "AWS_SECRET_ACCESS_KEY", "--aws-secret-access-key"),
    "gcp_api_key": _prefixed("AIza", URLSAFE, (35,), "GOOGLE_API_KEY", "--google-api-key"),
    "gcp_oauth": _prefixed("ya29.", URLSAFE, (120, 180), "GCP_ACCESS_TOKEN", "--access-token"),
    "azure_storage": _azure_storage,
    "github": _prefixed("ghp_", ALNUM, (36,), "GITHUB_TOKEN", "--gh-token"),
    "github_app": _prefixed("ghs_", ALNUM, (36,), "GH_TOKEN", "--gh_token"),
    "github_fine": _github_fine,
    "gitlab": _prefixed("glpat-", URLSAFE, (20,), "GITLAB_TOKEN", "--gitlab-token"),
    "slack": _slack,
    "openai": _openai_legacy,
    "openai_project": _prefixed("sk-proj-", URLSAFE, (124, 156), "OPENAI_API_KEY", "--openai-api-key"),
    "anthropic": _anthropic,
    "comet": _named(ALNUM, (25,), "COMET_API_KEY", "--comet_api_key"),
    "neptune": _neptune,
    "mlflow_token": _named(ALNUM, (32, 40), "MLFLOW_TRACKING_TOKEN", "--mlflow_tracking_token"),
    "mlflow_password": _mlflow_password,
    "ngc": _prefixed("nvapi-", URLSAFE, (64,), "NGC_API_KEY", "--ngc-key"),
    "ngc_legacy": _ngc_legacy,
    "jwt": _jwt,
    "kaggle": _named(HEX, (32,), "KAGGLE_KEY", "--kaggle_key"),
    "databricks": _prefixed("dapi", HEX, (32,), "DATABRICKS_TOKEN", "--databricks-token"),
    "password": _named(ALNUM + "!#%^*-_+=.", tuple(range(8, 21)), "DB_PASSWORD", "--db-password"),
    "api_key": _named(ALNUM, (24, 32, 48), "API_KEY", "--api_key"),
    "token": _named(ALNUM, (24, 32, 48), "AUTH_TOKEN", "--auth_token"),
    "secret": _named(ALNUM, (24, 32, 48), "CLIENT_SECRET", "--client-secret"),
}

NAMED_CONTEXTS: tuple[str, ...] = (
    "{variable}={text}",
    "export {variable}={text}",
    'declare -x {variable}="{text}"',
    "[default0]:{variable}={text}",
    "+ {variable}={text} torchrun --nproc_per_node 8 train.py",
    "environ({{'PATH': '/usr/bin', '{variable}': '{text}', 'RANK': '3'}})",
    '{{"env": {{"{variable}": "{text}", "NCCL_DEBUG": "INFO"}}, "num_gpus": 8}}',
    '{{"env":[{{"name":"{variable}","value":"{text}"}}]}}',
    "  {lower}: {text}",
    "  {lower}: '{text}'",
    "Namespace(lr=0.0003, {lower}='{text}', num_tokens=4096, eos_token='</s>')",
    "  {lower} ........................................ {text}",
    "python train.py {option} {text} --lr 3e-4",
    "python train.py {option}={text} --lr 3e-4",
    "Command ['python', 'train.py', '{option}', '{text}', '--lr', '3e-4'] returned non-zero exit status 1.",
    "| {lower:<40} | {text:<60} |",
    "RuntimeError: login failed with {lower}={text!r}",
    '  File "/app/train.py", line 10, in <module>  main({lower}="{text}")',
    "ValueError: cannot reach http://tracking.example.com:5000/api/2.0/mlflow?{lower}={text}&page=2",
    "os.environ['{variable}'] = '{text}'",
    '"config": "{{\\"{lower}\\": \\"{text}\\", \\"seed\\": 1}}"',
)

FREE_CONTEXTS: tuple[str, ...] = (
    "requests.exceptions.HTTPError: 401 Client Error for url: https://host.example.com/api/models?x={text}",
    "ValueError: credentials {text} were refused by the server",
    "[rank3]: RuntimeError: 403 Forbidden ({text})",
    "fatal: unable to access 'https://oauth2:{text}@git.example.com/team/repo.git/': The requested URL returned 403",
    "Authorization: Bearer {text}",
    '{{"headers": {{"Authorization": "Bearer {text}", "Accept": "*/*"}}}}',
    "curl -H 'Authorization: Bearer {text}' https://host.example.com/v1/models",
    '2026-01-02 03:04:05,678 ERROR invalid credential "{text}"',
    "{text}",
)

_URL_UNSAFE = frozenset(["azure_storage", "ngc_legacy", "neptune", "aws_secret"])


def _url_password(rng: random.Random) -> Sample:
    secret = _draw(rng, ALNUM + "!*-_.~$", rng.randint(8, 24))
    scheme = rng.choice(["https", "postgresql+psycopg2", "redis", "mongodb+srv", "amqp", "ftp", "http"])
    line = f"sqlalchemy.exc.OperationalError: {scheme}://trainer:{secret}@db.example.com:5432/mlflow refused"
    return Sample("url_password", line, secret)


def _basic(rng: random.Random) -> Sample:
    secret = base64.b64encode(f"trainer:{_draw(rng, ALNUM, 16)}".encode()).decode()
    line = rng.choice(
        ["Authorization: Basic {0}", "headers={{'authorization': 'Basic {0}'}}", "> authorization: Basic {0}"]
    )
    return Sample("basic", line.format(secret), secret)


def _sas(rng: random.Random) -> Sample:
    secret = base64.b64encode(rng.randbytes(32)).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    url = f"https://acct.blob.core.windows.net/c/ckpt.pt?sv=2022-11-02&ss=b&srt=o&sp=r&se=2026-01-01T00:00:00Z&sig={secret}"
    return Sample("azure_sas", f"azure.core.exceptions.HttpResponseError: GET {url} failed", secret)


def _azure_connection(rng: random.Random) -> Sample:
    secret = base64.b64encode(rng.randbytes(64)).decode()
    line = f"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={secret};EndpointSuffix=core.windows.net"
    return Sample("azure_connection", line, secret)


def _presigned(rng: random.Random) -> Sample:
    secret = _draw(rng, HEX, 64)
    url = f"https://bucket.s3.amazonaws.com/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=3600&X-Amz-Signature={secret}"
    return Sample("aws_signature", f"botocore.exceptions.ClientError: {url}", secret)


def _aws_pair(rng: random.Random) -> Sample:
    secret = _draw(rng, B64, 40)
    return Sample("aws_pair", f"ValueError: refused AKIA{_draw(rng, BASE32, 16)} / {secret}", secret)


def _service_account(rng: random.Random) -> Sample:
    body = base64.b64encode(rng.randbytes(600)).decode()
    lines = "\\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    line = (
        '{"type": "service_account", "project_id": "p", "private_key_id": "'
        + _draw(rng, HEX, 40)
        + '", "private_key": '
        f'"-----BEGIN PRIVATE KEY-----\\n{lines}\\n-----END PRIVATE KEY-----\\n", "client_email": "a@p.iam"}}'
    )
    return Sample("gcp_service_account", line, lines)


def _pem(rng: random.Random) -> Sample:
    name = rng.choice(["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"])
    body = base64.b64encode(rng.randbytes(rng.choice([120, 400, 1190]))).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return Sample("pem", f"ValueError: bad key\n-----BEGIN {name}-----\n{lines}\n-----END {name}-----", lines)


def _pem_line(rng: random.Random) -> Sample:
    secret = base64.b64encode(rng.randbytes(48)).decode()
    return Sample("pem_line", secret, secret)


def _slack_webhook(rng: random.Random) -> Sample:
    upper = string.ascii_uppercase + string.digits
    secret = f"T{_draw(rng, upper, 10)}/B{_draw(rng, upper, 10)}/{_draw(rng, ALNUM, 24)}"
    return Sample("slack_webhook", f"POST https://hooks.slack.com/services/{secret} failed: 404", secret)


def _wandb_login(rng: random.Random) -> Sample:
    secret = _draw(rng, HEX, 40)
    lines = (
        f"+ wandb login --relogin {secret}",
        f"wandb: ERROR API key {secret} was refused",
        f"machine api.wandb.ai login user password {secret}",
    )
    return Sample("wandb_login", rng.choice(lines), secret)


WHOLE_LINES: tuple[Callable[[random.Random], Sample], ...] = (
    *(_url_password, _basic, _sas, _azure_connection, _presigned, _aws_pair, _service_account, _pem, _pem_line),
    *(_slack_webhook, _wandb_login),
)


def samples(count: int, seed: int) -> list[Sample]:
    """So many lines, every kind of credential about as often as the others."""
    rng = random.Random(seed)  # noqa: S311 -- the same ones each time
    kinds = [*CREDENTIALS, *WHOLE_LINES]
    return [_sample(rng, kinds[number % len(kinds)]) for number in range(count)]


def _sample(rng: random.Random, kind: str | Callable[[random.Random], Sample]) -> Sample:
    if not isinstance(kind, str):
        return kind(rng)
    given = CREDENTIALS[kind](rng)
    free = [*FREE_CONTEXTS, *NAMED_CONTEXTS] if given.is_recognised and kind not in _URL_UNSAFE else NAMED_CONTEXTS
    context = rng.choice(free)
    lower = given.variable.lower()
    line = context.format(text=given.text, variable=given.variable, lower=lower, option=given.option)
    return Sample(kind, line, given.secret)
