"""Rows of `gpu_samples` from the output of nvidia-smi, rocm-smi, amd-smi, gpustat and DCGM."""
