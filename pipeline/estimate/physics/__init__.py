"""Memory, compute, communication and schedule of a layout from first principles."""
