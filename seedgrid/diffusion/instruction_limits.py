"""The variables that limit the vector instructions of a CPU's libraries. Needs no torch."""

from __future__ import annotations

from typing import Final

LIMIT_NAMES: Final = (
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
)
