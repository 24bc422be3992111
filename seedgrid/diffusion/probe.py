"""Test the lock: paint one batch, all steps and the decoding, beside poisoned neighbours.

What the own rows of the batch become is compared, bit by bit, with those of a batch of copies,
which has no neighbours and fills all slots (probed_call.py). That costs a third more than a grid,
and a second decoding.

It is a test and no proof: code that branches on a neighbour's value, and only on values that were
not tried, is not found (docs/lock.md).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Protocol

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.poison import Batch
from seedgrid.diffusion.probe_findings import Findings, LeakFound
from seedgrid.diffusion.probe_results import Check, ProbeReport
from seedgrid.diffusion.probed_call import Enough, ProbedCall

_LONG_PROMPT: Final = " ".join(["misty mountains above a quiet lake at dawn, painted"] * 34)


class Compute(Protocol):
    """Run one locked batch with a pipeline's parts watched, decoding and all."""

    def __call__(self, recipes: Sequence[Recipe], call: ProbedCall) -> None:
        """Compute a full batch inside `call.watching(pipeline)`.

        Args:
            recipes: Exactly `lock_width` of them.
            call: Watches the pipeline that is called.
        """
        ...


def run_probe(recipe: Recipe, compute: Compute, watch: Watch, *, denoiser: str) -> ProbeReport:
    """Find the greatest width at which no leak is found.

    Args:
        recipe: Of the kind that is to be painted; its words and seed do not matter.
        compute: Runs a batch.
        watch: Asked before everything that takes long whether to give way.
        denoiser: The pipeline's component that is run at every step.

    Raises:
        RunCancelled: `watch.cancelled` became true.
        RunError: A batch could not be computed.
    """
    started = time.monotonic()
    checks: list[Check] = []
    tested_width = 0
    for width in _widths(recipe.lock_width):
        found = Findings(width)
        holds = _is_tight(_of_width(recipe, width), compute, watch, denoiser, found)
        checks += found.checks()
        if holds:
            tested_width = width
            break
    return ProbeReport(
        model=recipe.model.id,
        dtype=recipe.dtype,
        size=f"{recipe.width}x{recipe.height}",
        scheduler=recipe.scheduler,
        num_inference_steps=recipe.num_inference_steps,
        asked_width=recipe.lock_width,
        tested_width=tested_width,
        checks=tuple(checks),
        elapsed_s=round(time.monotonic() - started, 3),
        tested_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _widths(asked: int) -> list[int]:
    return [asked, *(width for width in (8, 4, 2, 1) if width < asked)]


def _of_width(recipe: Recipe, width: int) -> Recipe:
    return recipe.model_copy(update={"lock_width": width})


def _is_tight(
    recipe: Recipe, compute: Compute, watch: Watch, denoiser: str, found: Findings
) -> bool:
    width = recipe.lock_width
    batch = Batch(width=width, own=0)
    try:
        alone = ProbedCall(batch, watch, found, denoiser=denoiser, ends_at_denoiser=True)
        with suppress(Enough):
            compute([recipe] * width, alone)
        beside = ProbedCall(batch, watch, found, denoiser=denoiser, expected=alone.seen)
        compute(_company(recipe), beside)
    except LeakFound:
        return False
    return True


def _company(recipe: Recipe) -> list[Recipe]:
    """Return a full batch, the cell first; the others have other words and seeds, and no mix.

    Whether there are negative words at all stays: it may decide how many rows there are.
    """
    words = ("fox", _LONG_PROMPT, recipe.prompt[::-1])
    negatives = ("blurry", "", _LONG_PROMPT)
    return [recipe] + [
        recipe.model_copy(
            update={
                "seed": (recipe.seed + place) % 2**32,
                "prompt": recipe.prompt and words[place % len(words)],
                "negative_prompt": recipe.negative_prompt and (negatives[place % 3] or "dull"),
                "noise_mix": (),
            }
        )
        for place in range(1, recipe.lock_width)
    ]
