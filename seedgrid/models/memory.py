"""How much memory this machine has for a model, and which number format suits both.

No torch needed: it would take seconds to ask.

fits(8_000_000_000)
"""

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
"""Of the memory, what a model may take: the system needs some, too."""
_SMALLER: Final[dict[str, DType]] = {"bfloat16": "bfloat16", "int8": "int8-bfloat16"}
"""Number formats that take less memory, the finest first, by the names that people choose."""


def fits(needs_bytes: int) -> bool:
    """Tell whether a model that takes so much fits into this machine's memory."""
    return needs_bytes <= _SHARE * memory_bytes()


def first_fitting(needs: Mapping[str, int]) -> str | None:
    """Return the first number format that fits, of what a model needs in each; None for none."""
    return next((name for name, num_bytes in needs.items() if fits(num_bytes)), None)


def check_room(model: str, needs: Callable[[DType], int], dtype: DType) -> None:
    """Refuse a model whose weights alone are more than this machine can hold, before it is loaded.

    The system would end the whole program otherwise. What is let go for it does not count: another
    model leaves before this one is read.

    Raises:
        ModelError: `model_memory`, or `model_memory_format` where another format would do.
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
    """Return the memory that models are loaded into: the largest GPU's, else the processor's."""
    own = int(psutil.virtual_memory().total)
    return (_gpu_bytes() or own) if likely_device_type() == "cuda" else own


def _gpu_bytes() -> int | None:
    """Ask NVIDIA's own tool; None where it does not say."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)  # noqa: S603 (the system's own tool)
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = [int(line) for line in said.stdout.split() if line.isdigit()]
    return max(numbers) * 1024 * 1024 if numbers else None


def size_text(num_bytes: float) -> str:
    """Say how large something is, as the page does.

    >>> size_text(132_968), size_text(6_938_000), size_text(13_876_000_000)
    ('133 KB', '6.9 MB', '14 GB')
    """
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
    one, unit = next((each for each in units if num_bytes >= each[0]), units[-1])
    number = num_bytes / one
    return f"{round(number, 1):g} {unit}" if number < 10 else f"{number:.0f} {unit}"


def choose_dtype(device_type: str, num_parameters: int) -> DType:
    """Return the number format for a model of that size on that kind of device.

    On NVIDIA's GPUs bfloat16 has the range of float32 in half the memory. A processor and a small
    model gain little from 16 bits, and on Apple's GPUs float16 gives NaN in many VAEs.
    """
    is_small = num_parameters < SMALL_MODEL_PARAMETERS
    return "bfloat16" if device_type == "cuda" and not is_small else "float32"


def weights_bytes(num_parameters: int, dtype: DType) -> int:
    """Return how much memory so many numbers take."""
    if dtype.startswith("int8-"):
        return num_parameters
    return num_parameters * (4 if dtype == "float32" else 2)


def likely_device_type() -> str:
    """Guess the kind of device by what the system shows, since asking torch takes seconds."""
    if Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None:
        return "cuda"
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "mps"
    return "cpu"
