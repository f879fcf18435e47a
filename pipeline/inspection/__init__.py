"""Tools on files without a store: `nccl`, `dialect test` and `doctor`."""
