"""Lightning's Trainer with the bars of tqdm or rich, and with CSVLogger or nothing beside them."""

from __future__ import annotations

import argparse
import json
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, RichProgressBar, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.logger import DummyLogger
from surroundings import Trouble, rows_of_tokens
from truth import Truth

_LENGTH = 32
_WORDS = 257


class Model(L.LightningModule):
    """A next-token model without attention."""

    def __init__(self, batch_size: int, seq_len: int) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.embed = torch.nn.Embedding(_WORDS, 64)
        self.head = torch.nn.Linear(64, _WORDS)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        (tokens,) = batch
        out = self.head(self.embed(tokens[:, :-1]))
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


class LoggerWitness(DummyLogger):
    """Writes down what is logged, beside CSVLogger: rich's bar, which is drawn once into a file, tells no more."""

    def __init__(self, truth: Truth) -> None:
        super().__init__()
        self.truth = truth

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        if "train_loss" in metrics and step is not None:
            self.truth.step(step, float(metrics["train_loss"]))


class Witness(Callback):
    """Ends the training badly when it is time; where tqdm's bar shows the loss of every step, it writes down those."""

    def __init__(self, truth: Truth, trouble: Trouble, *, is_shown: bool) -> None:
        self.truth, self.trouble, self.is_shown = truth, trouble, is_shown

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.trouble.after(trainer.global_step)  # before the bar moves
        micro_batches = trainer.accumulate_grad_batches
        if self.is_shown and (batch_idx + 1) % micro_batches == 0:
            loss = micro_batches * float(outputs["loss"])  # Lightning divides it
            self.truth.step(trainer.global_step - 1, loss)  # counted as a logger does, from 0


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", required=True)
    parser.add_argument("--arguments", type=json.loads, default={})
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--bar", choices=["tqdm", "rich"], default="tqdm")
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--trouble", default="")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--resume")
    options = parser.parse_args()
    model = Model(options.batch, _LENGTH)
    arguments = {"max_steps": 20, "accelerator": "cpu", "devices": 1, "log_every_n_steps": 2, **options.arguments}
    truth = Truth(
        options.truth,
        "lightning",
        num_gpus=arguments["devices"],
        mbs=options.batch,
        gas=arguments.get("accumulate_grad_batches", 1),
        seq_len=_LENGTH,
        steps_planned=arguments["max_steps"] if arguments["max_steps"] > 0 else None,
    )
    is_shown = options.bar == "tqdm" or not options.csv
    witness = Witness(truth, Trouble(options.trouble, options.at, truth), is_shown=is_shown)
    loggers = [CSVLogger("."), *([] if is_shown else [LoggerWitness(truth)])] if options.csv else False
    bars = [RichProgressBar() if options.bar == "rich" else TQDMProgressBar()]
    trainer = L.Trainer(**arguments, logger=loggers, callbacks=[witness, *bars])
    tokens = rows_of_tokens(options.rows, _LENGTH, _WORDS)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens), batch_size=options.batch)
    trainer.fit(model, loader, ckpt_path=options.resume)
    truth.ends("completed")


if __name__ == "__main__":
    main()
