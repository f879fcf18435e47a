"""What Slurm, PBS, LSF, Flux and Kubernetes say of jobs, and which run a job was."""
