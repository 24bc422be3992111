"""Prove, or disprove, the lock: compute one cell in other company and compare every bit.

Three batches of two steps are enough: the cell alone, padded with copies of itself; beside others,
whose prompts have 1 word and 300; and those in reverse order. Compared are latents and decoded
pictures before they are rounded, so that a difference too small for this picture is still found.
Where the lock does not hold, smaller widths are tried, down to 1, which has no neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol

import torch

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.probe_results import Check, ProbeReport

NUM_STEPS: Final = 2

_LONG_PROMPT: Final = " ".join(["misty mountains above a quiet lake at dawn, painted"] * 34)


class Compute(Protocol):
    """Run one locked batch and return what comes out before it is rounded."""

    def __call__(self, recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
        """Compute a full batch.

        Args:
            recipes: Exactly `lock_width` of them.
            decode: Whether the pictures are wanted too.

        Returns:
            The latents of the last step and, if decoded, the pictures in 0 … 1; one row a recipe.
        """
        ...


def run_probe(recipe: Recipe, compute: Compute, *, num_steps: int = NUM_STEPS) -> ProbeReport:
    """Find the greatest width at which the lock holds.

    Args:
        recipe: Of the kind that is to be painted; its words and seed do not matter.
        compute: Runs a batch.
        num_steps: How many steps; a few schedulers need more than two.

    Raises:
        RunError: A batch could not be computed.
    """
    started = time.monotonic()
    checks: list[Check] = []
    proven_width = 1
    for width in range(recipe.lock_width, 1, -1):
        checks += _checks(_small(recipe, width, num_steps), compute)
        if all(check.holds for check in checks if check.lock_width == width):
            proven_width = width
            break
    else:
        checks += _repeats(_small(recipe, 1, num_steps), compute)
    return ProbeReport(
        model=recipe.model.id,
        dtype=recipe.dtype,
        size=f"{recipe.width}x{recipe.height}",
        scheduler=recipe.scheduler,
        asked_width=recipe.lock_width,
        proven_width=proven_width,
        checks=tuple(checks),
        elapsed_s=round(time.monotonic() - started, 3),
    )


def _small(recipe: Recipe, width: int, num_steps: int) -> Recipe:
    update = {"lock_width": width, "num_inference_steps": num_steps, "noise_mix": ()}
    return recipe.model_copy(update=update)


def _company(recipe: Recipe) -> list[Recipe]:
    """Return a full batch around the cell, its second: other seeds and prompts."""
    words = (_LONG_PROMPT, recipe.prompt, "fox")
    return [
        recipe.model_copy(
            update={
                "seed": (recipe.seed + place - 1) % 2**32,
                "prompt": recipe.prompt and words[place % 3],
            }
        )
        for place in range(recipe.lock_width)
    ]


def _checks(recipe: Recipe, compute: Compute) -> list[Check]:
    company = _company(recipe)
    width = recipe.lock_width
    cell = company[1]
    (alone,) = compute([cell] * width, decode=False)
    beside = compute(company, decode=True)
    reverse = compute(company[::-1], decode=True)
    return [
        _compare("alone, as padding, in every slot", width, [alone[1:]], [alone[:1]]),
        _compare("beside prompts of 1 and 300 words", width, [beside[0][1:2]], [alone[:1]]),
        _compare("in another slot, in reverse order", width, [r.flip(0) for r in reverse], beside),
    ]


def _repeats(recipe: Recipe, compute: Compute) -> list[Check]:
    """At width 1 there are no neighbours; left to check is that a picture repeats."""
    first, again = (compute([recipe], decode=True) for _ in range(2))
    return [_compare("again", 1, again, first)]


def _compare(
    name: str, width: int, found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]
) -> Check:
    """Compare latents, and pictures where there are any; one expected row may stand for all."""
    pairs = [
        (rows.float().cpu(), other.float().cpu().expand_as(rows))
        for rows, other in zip(found, expected, strict=True)
    ]
    differing = sum(int((rows != other).sum()) for rows, other in pairs)
    return Check(
        name=name,
        lock_width=width,
        holds=differing == 0,
        differing=differing,
        compared=sum(rows.numel() for rows, _ in pairs),
        max_difference=max(float((rows - other).abs().max()) for rows, other in pairs),
    )
