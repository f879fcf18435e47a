"""Bundled data. The only code here says where it lies, so that an installed wheel finds it too."""

from pathlib import Path

HOME = Path(__file__).parent
PUBLISHED = HOME / "published"
HARDWARE = HOME / "hardware"
NETWORK = HOME / "network"
MODELS = HOME / "models"
CALIBRATION = HOME / "calibration"
