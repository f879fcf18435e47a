"""PyTorch's flight recorder dumps: records, process groups, and which collective hung."""
