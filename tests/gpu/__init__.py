"""A small sweep of our own on one GPU: a decoder in plain PyTorch, and transformers' Trainer, layout by layout.

`train` is the decoder's training, `train_trainer` that of transformers; both run with PyTorch (and transformers) alone,
on a machine that has a GPU and not necessarily sweepscope. `sweep` runs a list of layouts, each in a folder with its
console output, where `measured.json` has what it took; `kernels` times single kernels.
"""
