"""What nvidia-smi, rocm-smi, amd-smi, gpustat and DCGM print, as rows of `gpu_samples`."""
