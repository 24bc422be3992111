"""Pictures for tests: small, different by seed, without any model."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from seedgrid.core.picture import Entry, Lineage, Picture, new_id, now
from seedgrid.core.recipe import ModelRef, Passport, Recipe

MODEL = ModelRef(id="bundled", weights_sha256="ab" * 32)

FAMILIES = (
    *("sd", "sdxl", "sd3", "flux", "pixart", "pixart-sigma", "sana", "stable-unclip", "lcm"),
    *("ddpm", "ddim"),
)
"""One small pipeline of each (pipelines.py)."""


def make_recipe(**changes: Any) -> Recipe:
    fields: dict[str, Any] = {
        "prompt": "a red fox",
        "negative_prompt": "",
        "seed": 7,
        "width": 64,
        "height": 48,
        "num_inference_steps": 8,
        "guidance_scale": 7.5,
        "scheduler": "DPM++ 2M",
        "model": MODEL,
        "dtype": "float32",
        "lock_width": 4,
        "determinism": "strict",
        "loras": (),
        "noise_mix": (),
    }
    return Recipe(**(fields | changes))


def make_lineage(**changes: Any) -> Lineage:
    fields: dict[str, Any] = {
        "picture_id": new_id(),
        "work_id": new_id(),
        "round_id": new_id(),
        "cell": 0,
        "created_at": now(),
    }
    return Lineage(**(fields | changes))


def as_entry(picture: Picture, path: Path = Path("nowhere.png")) -> Entry:
    """Return what a library that kept the picture there would say of it."""
    return Entry(
        path=path,
        recipe=picture.recipe,
        passport=picture.passport,
        lineage=picture.lineage,
        pixels_sha256=picture.pixels_sha256,
        file_sha256="00" * 32,
    )


def make_picture(*, lineage: Lineage | None = None, **changes: Any) -> Picture:
    recipe = make_recipe(**changes)
    random = np.random.default_rng(recipe.seed)
    return Picture(
        pixels=random.integers(0, 256, (recipe.height, recipe.width, 3), dtype=np.uint8),
        recipe=recipe,
        passport=Passport(seedgrid="0.1.0", torch="2.13.0", device="cpu", threads=2),
        lineage=lineage or make_lineage(),
    )


def saved_again(data: bytes, *, pixel: tuple[int, int, int] | None = None) -> bytes:
    """Save a PNG with another program: all its texts are kept, and perhaps a pixel changed."""
    target, texts = io.BytesIO(), PngInfo()
    with Image.open(io.BytesIO(data)) as image:
        for key, text in image.text.items():
            texts.add_itxt(key, text)
        if pixel is not None:
            image.putpixel((3, 3), pixel)
        image.save(target, "PNG", pnginfo=texts)
    return target.getvalue()
