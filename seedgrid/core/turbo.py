"""Turbo: answer what a request left open for speed, not for parity with plain diffusers' defaults.

Everything it chooses stands in the recipe (number format, scheduler, steps), so a turbo picture is
locked, remembered, refined and verified like any other. What each choice gives is measured in
docs/performance.md.
"""

import math
from dataclasses import replace
from typing import Final

from seedgrid.core.card import ModelCard
from seedgrid.core.request import Request

FAST_SCHEDULER: Final = "DPM++ 2M"
STEP_SHARE: Final = 0.6
"""DPM++ 2M is of second order: it comes as far in six steps as DDIM in ten."""


def turbo_card(card: ModelCard, request: Request, *, has_fast_bfloat16: bool) -> ModelCard:
    """Return a card whose defaults are for speed; `resolve` takes from it what was left open."""
    if has_fast_bfloat16:
        card = replace(card, dtype="bfloat16")
    steps = math.ceil(STEP_SHARE * card.num_inference_steps)
    is_fewer = card.fewest_steps.get(FAST_SCHEDULER, 1) <= steps < card.num_inference_steps
    if request.scheduler is None and FAST_SCHEDULER in card.schedulers and is_fewer:
        card = replace(card, scheduler=FAST_SCHEDULER, num_inference_steps=steps)
    return card
