"""A hub's folder of a tiny Llama, with its weights and a tokenizer of bytes, and a folder of stories to train on.

In the trainers' interpreter: `python model.py FOLDER CONFIG NAME`, with the NAME that the trainer asks the hub for.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_STORIES = "roneneldan/TinyStories"


def main() -> None:
    """Write both into the folder."""
    folder, config, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    model, weights, stories = folder / name, folder / "hf_model_safetensors", folder / _STORIES
    for each in (model, stories, folder / "hf_model" / name):
        each.mkdir(parents=True, exist_ok=True)
    shape = LlamaConfig.from_pretrained(config)
    LlamaForCausalLM(shape).save_pretrained(weights)
    words = {symbol: number for number, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(model)
    for place in (model, folder / "hf_model" / name):  # picotron looks into the second for what it need not download
        shutil.copy(config, place / "config.json")
    lines = [
        json.dumps({"text": f"Number {n} met number {n * 7 % 100}, and they walked home. " * 4}) for n in range(900)
    ]
    (stories / "train.jsonl").write_text("\n".join([*lines, ""]))


main()
