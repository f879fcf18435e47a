"""What picotron imports of flash-attn."""

layer_norm_fn = None
