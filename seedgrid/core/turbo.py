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

from seedgrid.core.card import ModelCard
from seedgrid.core.request import Request

FAST_SCHEDULER: Final = "DPM++ 2M"
STEP_SHARE: Final = 0.6
"""DPM++ 2M is of second order: it comes as far in six steps as DDIM in ten."""

_CPU_INFO: Final = Path("/proc/cpuinfo")
_BFLOAT16_FLAGS: Final = frozenset({"avx512_bf16", "amx_bf16"})


def quicken(card: ModelCard, request: Request, *, device: str = "auto") -> ModelCard:
    """Return a card whose defaults are for speed; `resolve` takes from it what was left open.

    Args:
        card: The model that will paint.
        request: What was asked for: steps are fewer only where the scheduler is left open too.
        device: Where: a GPU always has fast bfloat16 units, a processor sometimes.
    """
    if has_fast_bfloat16(device):
        card = replace(card, dtype="bfloat16")
    if request.scheduler is None and FAST_SCHEDULER in card.schedulers:
        steps = math.ceil(STEP_SHARE * card.num_inference_steps)
        card = replace(card, scheduler=FAST_SCHEDULER, num_inference_steps=steps)
    return card


def has_fast_bfloat16(device: str = "auto") -> bool:
    """Tell whether 16 bits are faster than 32 there; where nobody can know, they are not used."""
    if device.startswith(("cuda", "xpu")):
        return True
    if device.startswith("mps") or not _CPU_INFO.is_file():
        return False
    lines = _CPU_INFO.read_text().splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not _BFLOAT16_FLAGS.isdisjoint(flags.split())
