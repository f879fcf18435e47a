"""What picotron imports of flash-attn."""

apply_rotary_emb = None
