"""Files beside the logs of a simulated sweep: NCCL's output, dumps, samples, a snapshot, the scheduler's table."""
