"""What picotron imports of flash-attn."""

flash_attn_func = None
