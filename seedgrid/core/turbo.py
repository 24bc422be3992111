"""Turbo: answer what a request left open for speed, not for parity with plain diffusers' defaults.

Everything it chooses stands in the recipe (number format, scheduler, steps), so a turbo picture is
locked, remembered, refined and verified like any other. What each choice gives is measured in
docs/performance.md. Knows the card of a model and the processor; needs no torch.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Final

from seedgrid.core.request import ModelCard, Request

FAST_SCHEDULER: Final = "DPM++ 2M"
STEP_SHARE: Final = 0.6
"""DPM++ 2M is of second order: it comes as far in six steps as DDIM in ten."""

_CPU_INFO: Final = Path("/proc/cpuinfo")
_BFLOAT16_FLAGS: Final = frozenset({"avx512_bf16", "amx_bf16"})


def quicken(request: Request, card: ModelCard, *, device: str = "auto") -> Request:
    """Answer what was left open for speed; what was said stays.

    Args:
        request: What was asked for.
        card: The model that will paint.
        device: Where: a GPU always has fast bfloat16 units, a processor sometimes.
    """
    answers: dict[str, object] = {}
    if request.dtype is None and has_fast_bfloat16(device):
        answers["dtype"] = "bfloat16"
    if request.scheduler is None and FAST_SCHEDULER in card.schedulers:
        answers["scheduler"] = FAST_SCHEDULER
        if request.num_inference_steps is None:
            answers["num_inference_steps"] = math.ceil(STEP_SHARE * card.num_inference_steps)
    return replace(request, **answers)  # type: ignore[arg-type] # the names are the fields' own


def has_fast_bfloat16(device: str = "auto") -> bool:
    """Tell whether 16 bits are faster than 32 there; where nobody can know, they are not used."""
    if device.startswith(("cuda", "xpu")):
        return True
    if device.startswith("mps") or not _CPU_INFO.is_file():
        return False
    lines = _CPU_INFO.read_text().splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not _BFLOAT16_FLAGS.isdisjoint(flags.split())
