-- Scaling of one model at one sequence length, batch and card, from a baseline to another number of accelerators.
-- Efficiency is the ratio of tokens/s per accelerator; above 1 each accelerator is faster than at the baseline.
CREATE MACRO scaling_efficiency_of(per_gpu, baseline_per_gpu) AS per_gpu / baseline_per_gpu;
-- Throughput of the whole job if it grew with the accelerators.
CREATE MACRO ideal_tokens_per_s(gpus, baseline_gpus, baseline_total) AS baseline_total * gpus / baseline_gpus;
