"""Which number format suits a model on this machine, and why. No torch needed.

It is a default only: the recipe holds the format, so a picture is never computed in another.

    >>> choose_dtype("cpu", num_parameters=12_000_000).dtype
    'float32'
"""

from __future__ import annotations

import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seedgrid.core.recipe import DType

SMALL_MODEL_PARAMETERS: Final = 200_000_000


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A number format and the reason for it."""

    dtype: DType
    reason: str


_BY_DEVICE: Final = {
    "cuda": Choice(dtype="bfloat16", reason="half the memory of float32 with its range"),
    "mps": Choice(dtype="float32", reason="float16 gives NaN in many VAEs on Apple's GPUs"),
    "cpu": Choice(dtype="float32", reason="a CPU gains little from 16 bits"),
}
_SMALL: Final = Choice(dtype="float32", reason="a model this small gains nothing from 16 bits")


def choose_dtype(device_type: str, num_parameters: int) -> Choice:
    """Return the number format for a model of that size on that kind of device."""
    if num_parameters < SMALL_MODEL_PARAMETERS:
        return _SMALL
    return _BY_DEVICE.get(device_type, _BY_DEVICE["cpu"])


def likely_device_type() -> str:
    """Guess the kind of device by what the system shows, since asking torch takes seconds."""
    if Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None:
        return "cuda"
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "mps"
    return "cpu"
