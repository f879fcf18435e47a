"""The files by which a simulated sweep is known. Ingest looks for the marker and then sets `origin = 'simulated'`."""

from __future__ import annotations

MARKER_NAME = ".sweepscope-simulated.json"
"""Stands in the sweep's root; everything below that directory is simulated."""

TRUTH_NAME = "truth.jsonl"
"""Stands beside the marker: one JSON object per run. It is the answer sheet and is never ingested."""
