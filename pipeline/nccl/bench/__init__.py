"""Results of nccl-tests and rccl-tests in every format that they print."""
