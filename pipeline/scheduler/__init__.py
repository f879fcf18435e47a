"""Jobs of Slurm, PBS, LSF, Flux and Kubernetes, from their printed tables, and the runs that they were."""
