"""Settings of a run from files beside its log and from the names of its folders."""
