"""Where the training keeps what it makes: one folder in the user's cache, found again later."""

from __future__ import annotations

from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parents[2]
MODEL_DIR = ROOT / "assets" / "model"
"""What ships."""
NETWORK_FILE = Path("upscalers") / "bundled-4x.safetensors"
"""In it: the network that makes its pictures larger."""


def work_dir() -> Path:
    """The folder for shards and checkpoints, made where it is missing."""
    folder = Path(platformdirs.user_cache_dir("seedgrid")) / "training"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
