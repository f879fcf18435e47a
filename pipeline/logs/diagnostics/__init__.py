"""What ails a run that its status does not say: divergence, slowdown, silence, stragglers."""
