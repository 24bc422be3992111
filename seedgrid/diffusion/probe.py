"""Test the lock: paint one batch, all steps and the decoding, beside poisoned neighbours.

First the pipeline is called with every part of it watched (`poisoned_call.py`): what enters text
encoders, denoiser, scheduler and decoder has neighbours that are as bad as can be, in a slot that
changes. NaN in the own picture is a leak at once; at every third step and for the decoding the own
rows are compared, bit by bit, with those of a batch of copies, which has no neighbours and fills
all slots. Then the pipeline is called once more for such a batch, and denoiser and decoder are not
run but give back what they gave (`replayed_call.py`): whatever lies between the parts, the words,
the noise, guidance, the scheduler and what is made of the decoded pictures, must come to the very
same rows. In all it costs a third more denoising than a grid, and a second decoding.

It is a test and no proof: code that branches on a neighbour's value, and only on values that were
not tried, is not found (docs/lock.md).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import torch

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.poison import Batch
from seedgrid.diffusion.poisoned_call import PoisonedCall
from seedgrid.diffusion.probe_findings import Findings, LeakFound
from seedgrid.diffusion.probe_results import Check, ProbeReport
from seedgrid.diffusion.replayed_call import ReplayedCall
from seedgrid.diffusion.watched_parts import Watching

_LONG_PROMPT: Final = " ".join(["misty mountains above a quiet lake at dawn, painted"] * 34)


class Compute(Protocol):
    """Run one locked batch with a pipeline's parts watched, decoding and all."""

    def __call__(self, recipes: Sequence[Recipe], watching: Watching) -> list[torch.Tensor]:
        """Compute a full batch inside `watching.watching(pipeline)`.

        Args:
            recipes: Exactly `lock_width` of them.
            watching: Watches the pipeline that is called.

        Returns:
            All that came out, each with one row a cell.
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
    # In the middle, where there is one: what takes the first row, or the last, for all is found.
    batch = Batch(width=width, own=min(1, width - 1))
    company = _company(recipe)
    try:
        poisoned = PoisonedCall(batch, watch, found)
        painted = compute(_with_own(recipe, company, batch.own), poisoned)
        found.require(f"denoiser ({denoiser})")
        own = [batch.own_rows(rows) for rows in painted]
        again = ReplayedCall(batch, watch, found, poisoned.record, is_alone=True)
        found.note("picture", batch, own, compute([recipe] * width, again))
        again.check_number_of_calls()
        if width == 2:
            first = Batch(width=width, own=0)
            moved = ReplayedCall(first, watch, found, poisoned.record, is_alone=False)
            rows = compute(_with_own(recipe, company, 0), moved)
            found.note("picture", first, own, [first.copies(each) for each in rows])
    except LeakFound:
        return False
    return True


def _with_own(recipe: Recipe, company: Sequence[Recipe], slot: int) -> list[Recipe]:
    return [*company[:slot], recipe, *company[slot:]]


def _company(recipe: Recipe) -> list[Recipe]:
    """Return the neighbours of a full batch: they have other words and seeds, and no mix.

    Whether there are negative words at all stays: it may decide how many rows there are.
    """
    words = ("fox", _LONG_PROMPT, recipe.prompt[::-1])
    negatives = ("blurry", "", _LONG_PROMPT)
    return [
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
