"""Words of the views on money and energy."""

from __future__ import annotations

ENERGY_BASIS: dict[str, str] = {
    "sampled": "every accelerator of the run was sampled",
    "scaled": "some were; the others are taken to draw as much",
}
