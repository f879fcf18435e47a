"""In the place of Weights & Biases, which the trainings switch off."""
