"""Settings of this process: for speed, and the environment variables that change pictures' bits.

`app.py` and the command line call `tune_process` before anything else; a script may do the same.

torch, oneDNN, MKL and NumPy read environment variables that limit which processor instructions they
use. Other instructions give other bits, so a passport records these variables, and an exported
script sets them again. A passport may come from a stranger: only the names and values that are
accepted here are ever put into an environment.
"""

import ctypes
import gc
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# From malloc.h of the GNU C library
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_KEPT_BYTES: Final = 128 * 1024**2  # Freed memory that is not returned to the system
_LARGE_BYTES: Final = 64 * 1024**2  # Larger blocks are always returned when freed

SPIN_COUNT: Final = "100000"  # A third of libgomp's default; 10,000 paints 5 % slower
_SPIN_VARIABLES: Final = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")  # If one is set, SeedGrid sets none

_CPU_INFO: Final = Path("/proc/cpuinfo")  # Linux only

_is_tuned = False

_ISA: Final = r"(?:ALL|DEFAULT|SSE41|AVX(?:10|2|512)?(?:_[A-Z0-9]{1,8}){0,6})"
_FEATURES: Final = re.compile(r"[A-Z0-9_]{2,11}(?:[ ,][A-Z0-9_]{2,11}){0,4}", re.ASCII)
_MKL: Final = r"(?:SSE(?:2|3|4_1|4_2)|SSSE3|AVX|AVX2(?:_E1)?|AVX512(?:_E[1-5]|_MIC)?)"

# oneDNN: https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html; MKL: its
# developer guide, "Conditional Numerical Reproducibility"; torch: aten/src/ATen/native/DispatchStub
_ACCEPTED: Final[dict[str, re.Pattern[str]]] = {
    "ATEN_CPU_CAPABILITY": re.compile(r"default|avx2|avx512|amx|vsx|zvector|sve|sve128|sve256"),
    "ONEDNN_MAX_CPU_ISA": re.compile(_ISA, re.IGNORECASE | re.ASCII),
    "DNNL_MAX_CPU_ISA": re.compile(_ISA, re.IGNORECASE | re.ASCII),
    "MKL_CBWR": re.compile(
        rf"(?:OFF|AUTO|COMPATIBLE|{_MKL})(?:,STRICT)?", re.IGNORECASE | re.ASCII
    ),
    "MKL_ENABLE_INSTRUCTIONS": re.compile(_MKL, re.IGNORECASE | re.ASCII),
    # NumPy computes the logarithms and roots of schedulers' tables:
    # https://numpy.org/doc/stable/reference/simd/build-options.html
    "NPY_DISABLE_CPU_FEATURES": _FEATURES,
    "NPY_ENABLE_CPU_FEATURES": _FEATURES,
    # GCC's libgomp obeys these, whatever number of threads torch is set to.
    "OMP_DYNAMIC": re.compile(r"true|false|0|1", re.IGNORECASE | re.ASCII),
    "OMP_THREAD_LIMIT": re.compile(r"[0-9]{1,6}", re.ASCII),
    # The attention of diffusers' newer models: only torch's own kernels, as others download code.
    "DIFFUSERS_ATTN_BACKEND": re.compile(r"native|_native_(?:math|flash|efficient|cudnn)|flex"),
}

LIMIT_NAMES: Final = tuple(_ACCEPTED)  # Variables that limit instructions or threads


def tune_process() -> None:
    """Make this process quicker at painting and starting, without changing any bit of a picture.

    Freed memory is kept for later use, waiting threads go to sleep sooner, and `large_import`
    pauses the garbage collector. Call this before threads are started and torch is imported.
    """
    global _is_tuned
    if not _is_tuned:
        _is_tuned = True
        _keep_freed_memory()
        # Source: https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html
        if not any(name in os.environ for name in _SPIN_VARIABLES):
            os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT


@contextmanager
def large_import() -> Iterator[None]:
    """In a tuned process, pause the garbage collector in the block, which imports a large library.

    The collector never looks at the imported objects again (`gc.freeze`). This saves a seventh of
    the time of importing Gradio, and a fifth of that of torch and diffusers.
    """
    if not _is_tuned:
        yield
        return
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_collecting:
            gc.enable()


def _keep_freed_memory() -> None:
    """Have the C library of Linux keep up to 128 MB of freed memory for the next allocations.

    By default it returns big blocks to the system, which fills new ones with zeros. Filling took a
    fifth of a small model's painting time. All threads share one arena (heap of the C library),
    since only the first arena can hold blocks above 64 MB.
    """
    is_linux = sys.platform.startswith("linux")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if is_linux else None
    if mallopt is not None:  # Other C libraries (musl) do not have this function.
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def processor_name() -> str:
    """Return the processor's name, on ARM its number; `platform` knows neither on Linux."""
    info = _CPU_INFO.read_text("utf-8", "replace") if _CPU_INFO.is_file() else ""
    match = re.search(r"^(?:model name|CPU part)\s*:(.*)$", info, re.MULTILINE)
    return (match[1].strip() if match else "") or platform.processor() or platform.machine()


def limits_in_force(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment's limit variables; values not accepted become "other: …"."""
    accepted = accepted_limits(environment)
    limits = {name: environment[name] for name in LIMIT_NAMES if name in environment}
    return {name: accepted.get(name, f"other: {value!a:.60}") for name, value in limits.items()}


def accepted_limits(limits: Mapping[str, object]) -> dict[str, str]:
    """Return only the variables whose name and value are accepted here."""
    return {
        name: value
        for name, pattern in _ACCEPTED.items()
        if isinstance(value := limits.get(name), str) and pattern.fullmatch(value)
    }
