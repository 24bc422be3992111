"""Compare what this machine computes with the hashes that belong to the definition.

A hash that differs means that pictures made here would not be those of other machines: a fault in
this build of torch or NumPy, or a library that changed what it calls.

    wrong = check()   # () where all is well, after a second or two
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from seedgrid.diffusion.portable.cases import CASES
from seedgrid.diffusion.portable.golden import GOLDEN
from seedgrid.diffusion.portable.mode import portable


def digest(value: Any) -> str:
    """Return a SHA-256 over the bytes of tensors, in order, least significant byte first."""
    tensors = value if isinstance(value, tuple | list) else [value]
    hashed = hashlib.sha256()
    for tensor in tensors:
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def run(name: str) -> str:
    """Compute one case by portable arithmetic and return its hash."""
    with torch.device("cpu"), portable():
        return digest(CASES[name]())


def check() -> tuple[str, ...]:
    """Return the names of the operations whose hash is another one here."""
    return tuple(name for name in CASES if run(name) != GOLDEN.get(name))


def grid_digest(pipeline: Any) -> str:
    """Paint four tiny pictures with the bundled model's pipeline and return their hash.

    Args:
        pipeline: Of the folder assets/model, in float32; its scheduler is replaced.
    """
    with portable():
        pipeline.scheduler = type(pipeline.scheduler).from_config(pipeline.scheduler.config)
        pictures = pipeline(
            ["a red sailboat at sunset"] * 4,
            generator=[torch.Generator("cpu").manual_seed(seed) for seed in range(4)],
            num_inference_steps=2,
            guidance_scale=2.0,
            width=64,
            height=64,
            output_type="pt",
        ).images
    return digest(pictures)
