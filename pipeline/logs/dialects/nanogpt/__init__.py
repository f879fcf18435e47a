"""nanoGPT and its kin."""
