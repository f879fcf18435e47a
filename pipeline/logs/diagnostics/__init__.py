"""Findings on runs beside their status: divergence, slowdown, silence, stragglers, GPUs shared or held too long."""
