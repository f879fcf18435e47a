"""Names of the files that mark a simulated sweep. Ingest sets `origin = 'simulated'` where it finds the marker."""

from __future__ import annotations

MARKER_NAME = ".sweepscope-simulated.json"
"""In the sweep's root; everything below that directory is simulated."""

TRUTH_NAME = "truth.jsonl"
"""Beside the marker: the ground truth, one JSON object per run. Never ingested."""

EVIDENCE_TRUTH_NAME = "truth_evidence.jsonl"
"""Beside both: what lies beside the logs of some runs, one JSON object per set of files. Never ingested."""
