"""NCCL's lines as facts: cutting, classifying and reading each kind of line."""
