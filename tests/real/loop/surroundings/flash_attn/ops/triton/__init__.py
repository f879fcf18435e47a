"""In the place of flash-attn, which needs a GPU to be installed: imported, and not called, on a CPU."""
