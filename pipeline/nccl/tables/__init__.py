"""Facts of many files as rows of the `nccl_*` tables."""
