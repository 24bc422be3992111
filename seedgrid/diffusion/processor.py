"""The processor as the operating system describes it. Needs no torch."""

import platform
from pathlib import Path
from typing import Final

_CPU_INFO: Final = Path("/proc/cpuinfo")  # Linux only
_BFLOAT16_FLAGS: Final = frozenset({"avx512_bf16", "amx_bf16"})


def processor_name() -> str:
    """Return the processor's own name; the standard library knows it only on some systems."""
    return _described("model name") or platform.processor() or platform.machine()


def has_fast_bfloat16(device: str) -> bool:
    """Tell whether 16 bits are faster than 32 there; where nobody can know, they are not used.

    Args:
        device: As in `Placement`: GPUs of NVIDIA and Intel have the units, processors sometimes.
    """
    if device.startswith(("cuda", "xpu")):
        return True
    flags = _described("flags").split()
    return not device.startswith("mps") and not _BFLOAT16_FLAGS.isdisjoint(flags)


def _described(key: str) -> str:
    """Return what the system says first under a key; empty where it says nothing."""
    if not _CPU_INFO.is_file():
        return ""
    lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in pairs if name.strip() == key), "")
