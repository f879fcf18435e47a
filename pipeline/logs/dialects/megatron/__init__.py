"""Megatron-LM and Megatron-DeepSpeed."""
