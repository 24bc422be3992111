"""The memory of this machine, and the number format for a model. Needs no torch."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import psutil

from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import DType

SMALL_MODEL_PARAMETERS: Final = 200_000_000

_SHARE: Final = 0.9
"""The share of the memory that a model may take."""
_SMALLER: Final[dict[str, DType]] = {"bfloat16": "bfloat16", "int8": "int8-bfloat16"}
"""Number formats that take less memory than float32, the most exact first, by option name."""


def first_fitting(needs: Mapping[str, int]) -> str | None:
    """Return the first number format whose bytes fit this machine's memory; None if none does."""
    most = _SHARE * memory_bytes()
    return next((name for name, num_bytes in needs.items() if num_bytes <= most), None)


def check_room(model: str, needs: Callable[[DType], int], dtype: DType) -> None:
    """Refuse a model whose weights are larger than memory and swap, before it is loaded.

    Otherwise the system would kill the program. Loaded models do not count: they are freed first.

    Raises:
        ModelError: `model_memory`, or `model_memory_format` if a smaller format would fit.
    """
    wanted = needs(dtype)
    own = int(psutil.virtual_memory().total + psutil.swap_memory().total)
    if wanted > own:
        sizes = {"wanted": f"{wanted / 1e9:.1f}", "own": f"{own / 1e9:.1f}"}
        for name, smaller in _SMALLER.items():
            if needs(smaller) <= own:
                raise ModelError("model_memory_format", value=model, **sizes, format=name)
        raise ModelError("model_memory", value=model, **sizes)


@cache
def memory_bytes() -> int:
    """Return the bytes of memory for models: the largest GPU's, else the main memory."""
    own = int(psutil.virtual_memory().total)
    return (_gpu_bytes() or own) if likely_device_type() == "cuda" else own


def _gpu_bytes() -> int | None:
    """Return the memory of the largest NVIDIA GPU by `nvidia-smi`; None if unknown."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)  # noqa: S603 (the system's own tool)
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = [int(line) for line in answer.stdout.split() if line.isdigit()]
    return max(numbers) * 1024 * 1024 if numbers else None


def size_text(num_bytes: float) -> str:
    """Return a size as the page shows it.

    >>> size_text(132_968), size_text(6_938_000), size_text(13_876_000_000)
    ('133 KB', '6.9 MB', '14 GB')
    """
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
    one, unit = next((each for each in units if num_bytes >= each[0]), units[-1])
    number = num_bytes / one
    return f"{round(number, 1):g} {unit}" if number < 10 else f"{number:.0f} {unit}"


def choose_dtype(device_type: str, num_parameters: int) -> DType:
    """Return the default number format for a model of a size on a kind of device.

    On NVIDIA GPUs bfloat16 has the range of float32 in half the memory. CPUs and small models gain
    little from 16 bits, and on Apple GPUs float16 gives NaN in many VAEs.
    """
    is_small = num_parameters < SMALL_MODEL_PARAMETERS
    return "bfloat16" if device_type == "cuda" and not is_small else "float32"


def likely_device_type() -> str:
    """Guess the kind of device without torch, whose import takes seconds."""
    if Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None:
        return "cuda"
    is_apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return "mps" if is_apple else "cpu"
