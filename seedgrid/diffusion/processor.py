"""The processor's name, and the variables that limit its instructions.

torch, oneDNN, MKL and NumPy read those variables at their start; they change bits, so a passport
records them and an exported script sets them again. A passport may be a stranger's: only names and
values of this list go into an environment.

    accepted_limits({"MKL_CBWR": "AVX2", "LD_PRELOAD": "evil.so"})   # {'MKL_CBWR': 'AVX2'}
"""

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_CPU_INFO: Final = Path("/proc/cpuinfo")  # Linux only


def processor_name() -> str:
    """Return the processor's own name; the standard library knows it only on some systems."""
    info = _CPU_INFO.read_text("utf-8", "replace") if _CPU_INFO.is_file() else ""
    match = re.search(r"^model name\s*:(.*)$", info, re.MULTILINE)
    return (match[1].strip() if match else "") or platform.processor() or platform.machine()


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

LIMIT_NAMES: Final = tuple(_VALUES)  # They limit a CPU's libraries: instructions, threads


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
