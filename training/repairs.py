"""What the denoiser made of known pictures, kept for the decoder's last lesson.

A picture is a function of its words and of the twelve numbers in the noise. So for every prompt and
every noise the wanted picture can be drawn, and the decoder can learn to make it from what the
denoiser really gives, mistakes included: it repairs edges that the latents have only nearly right.
Knows nothing about who makes them (`resampling.py`).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from training.dataset import Shard
from training.places import work_dir
from training.words import Wording


def clear_repairs() -> None:
    """Delete what an older denoiser made."""
    for old in _folder().glob("*"):
        old.unlink()


def save_repairs(index: int, made: Shard) -> None:
    """Keep a shard; it counts once its wordings are there."""
    stem = _folder() / f"{index:04d}"
    np.save(stem.with_suffix(".latents.npy"), made.latents.astype(np.float16))
    np.save(stem.with_suffix(".normals.npy"), made.normals)
    stem.with_suffix(".json").write_text(json.dumps([asdict(wording) for wording in made.wordings]))


def load_repairs() -> list[Shard]:
    """All that was made."""
    stems = sorted(path.with_suffix("") for path in _folder().glob("*.json"))
    return [
        Shard(
            latents=np.load(stem.with_suffix(".latents.npy"), mmap_mode="r"),
            normals=np.load(stem.with_suffix(".normals.npy")),
            wordings=[
                Wording(**each) for each in json.loads(stem.with_suffix(".json").read_text())
            ],
        )
        for stem in stems
    ]


def _folder() -> Path:
    folder = work_dir() / "repairs"
    folder.mkdir(exist_ok=True)
    return folder
