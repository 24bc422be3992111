"""Which number format suits a model on this machine. No torch needed.

It is a default only: the recipe holds the format, so a picture is never computed in another.

    >>> choose_dtype("cpu", num_parameters=12_000_000)
    'float32'
"""

import platform
import shutil
import sys
from pathlib import Path
from typing import Final

from seedgrid.core.recipe import DType

SMALL_MODEL_PARAMETERS: Final = 200_000_000


def choose_dtype(device_type: str, num_parameters: int) -> DType:
    """Return the number format for a model of that size on that kind of device.

    On NVIDIA's GPUs bfloat16 has the range of float32 in half the memory. A processor and a small
    model gain little from 16 bits, and on Apple's GPUs float16 gives NaN in many VAEs.
    """
    is_small = num_parameters < SMALL_MODEL_PARAMETERS
    return "bfloat16" if device_type == "cuda" and not is_small else "float32"


def weights_bytes(num_parameters: int, dtype: DType) -> int:
    """Return how much memory so many numbers take."""
    return num_parameters * (4 if dtype == "float32" else 2)


def likely_device_type() -> str:
    """Guess the kind of device by what the system shows, since asking torch takes seconds."""
    if Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None:
        return "cuda"
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "mps"
    return "cpu"
