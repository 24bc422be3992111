"""The process and its processor: what our programs tune, and what limits its instructions.

`app.py` and the command line call `tune_process` before anything else; a script may do the same.

torch, oneDNN, MKL and NumPy read variables that limit the processor's instructions. These change
bits, so a passport records them, and an exported script sets them again. A passport may come from a
stranger: only the names and values listed here go into an environment.
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

_KEPT_BYTES: Final = 128 * 1024**2
_LARGE_BYTES: Final = 64 * 1024**2

SPIN_COUNT: Final = "100000"  # A third of libgomp's default; 10,000 paints 5 % slower
_USERS_OWN: Final = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")

_CPU_INFO: Final = Path("/proc/cpuinfo")  # Linux only

_tuned = False

_ISA: Final = r"(?:ALL|DEFAULT|SSE41|AVX(?:10|2|512)?(?:_[A-Z0-9]{1,8}){0,6})"
_FEATURES: Final = re.compile(r"[A-Z0-9_]{2,11}(?:[ ,][A-Z0-9_]{2,11}){0,4}", re.ASCII)
_MKL: Final = r"(?:SSE(?:2|3|4_1|4_2)|SSSE3|AVX|AVX2(?:_E1)?|AVX512(?:_E[1-5]|_MIC)?)"

# oneDNN: https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html; MKL: its
# developer guide, "Conditional Numerical Reproducibility"; torch: aten/src/ATen/native/DispatchStub
_VALUES: Final[dict[str, re.Pattern[str]]] = {
    "ATEN_CPU_CAPABILITY": re.compile(r"default|avx2|avx512|amx|vsx|zvector|sve|sve128|sve256"),
    "ONEDNN_MAX_CPU_ISA": re.compile(_ISA, re.IGNORECASE | re.ASCII),
    "DNNL_MAX_CPU_ISA": re.compile(_ISA, re.IGNORECASE | re.ASCII),
    "MKL_CBWR": re.compile(
        rf"(?:OFF|AUTO|COMPATIBLE|{_MKL})(?:,STRICT)?", re.IGNORECASE | re.ASCII
    ),
    "MKL_ENABLE_INSTRUCTIONS": re.compile(_MKL, re.IGNORECASE | re.ASCII),
    # NumPy's logarithms and roots, of which schedulers make their tables:
    # https://numpy.org/doc/stable/reference/simd/build-options.html
    "NPY_DISABLE_CPU_FEATURES": _FEATURES,
    "NPY_ENABLE_CPU_FEATURES": _FEATURES,
    # GCC's libgomp obeys these, whatever number of threads torch is set to.
    "OMP_DYNAMIC": re.compile(r"true|false|0|1", re.IGNORECASE | re.ASCII),
    "OMP_THREAD_LIMIT": re.compile(r"[0-9]{1,6}", re.ASCII),
    # The attention of diffusers' newer models: only those in torch, as others download code.
    "DIFFUSERS_ATTN_BACKEND": re.compile(r"native|_native_(?:math|flash|efficient|cudnn)|flex"),
}

LIMIT_NAMES: Final = tuple(_VALUES)  # Variables that limit instructions or threads


def tune_process() -> None:
    """Make this process quicker at painting and starting; not one bit of a picture changes.

    Freed memory is kept, waiting threads sleep, large imports pause the garbage collector. Call it
    before threads are started and torch is imported.
    """
    global _tuned
    if not _tuned:
        _tuned = True
        _keep_freed_memory()
        # Source: https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html
        if not any(name in os.environ for name in _USERS_OWN):
            os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT


@contextmanager
def large_import() -> Iterator[None]:
    """Pause the garbage collector for imports, and exempt what they made, in a tuned process.

    It saves a seventh of Gradio's import, a fifth of torch's and diffusers'.
    """
    if not _tuned:
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
    """Keep up to 128 MB of freed memory for the next allocations.

    Linux's C library gives large blocks back, and the system fills new ones with zeros: a fifth of
    the time of a small model. One arena for all threads: the others cannot hold blocks above 64 MB.
    """
    is_linux = sys.platform.startswith("linux")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if is_linux else None
    if mallopt is not None:  # Another C library (musl) has none.
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def processor_name() -> str:
    """Return the processor's own name; the standard library knows it only on some systems."""
    info = _CPU_INFO.read_text("utf-8", "replace") if _CPU_INFO.is_file() else ""
    match = re.search(r"^model name\s*:(.*)$", info, re.MULTILINE)
    return (match[1].strip() if match else "") or platform.processor() or platform.machine()


def limits_in_force(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the limits of an environment; values that are not accepted are marked as "other"."""
    known = accepted_limits(environment)
    limits = {name: environment[name] for name in LIMIT_NAMES if name in environment}
    return {name: known.get(name, f"other: {value!a:.60}") for name, value in limits.items()}


def accepted_limits(limits: Mapping[str, object]) -> dict[str, str]:
    """Return only the limits whose name and value are known here."""
    return {
        name: value
        for name, pattern in _VALUES.items()
        if isinstance(value := limits.get(name), str) and pattern.fullmatch(value)
    }
