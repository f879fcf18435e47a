"""PyTorch's allocator snapshots as columns, read without executing what they contain."""
