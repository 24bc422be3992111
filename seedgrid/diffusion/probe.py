"""Test the lock: paint one batch, all steps and the decoding, beside poisoned neighbours.

First the pipeline is called with every part of it watched (`poisoned_call.py`): what enters text
encoders, denoiser, scheduler and decoder has neighbours that are as bad as can be, in a slot that
changes. NaN in the own picture is a leak at once; where a grid was watched while it was painted
(`witness.py`), the own rows are compared with its own. Then the pipeline is called once more for
the batch turned round: the own picture in all slots but the one that it had, and there a neighbour.
Denoiser and decoder are not run but give back what they gave (`replayed_call.py`): whatever lies
between the parts, the words, the noise, guidance, the scheduler and what is made of the decoded
pictures, must come to the very same rows. Without a witness every third step and the decoding are
run there, too, and compared, bit by bit: a third more denoising than a grid, a second decoding.

It is a test and no proof: code that branches on a neighbour's value, and only on values that were
not tried, is not found (docs/lock.md).
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Protocol

import torch

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import NoiseShare, Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.poison import Batch, is_finite
from seedgrid.diffusion.poisoned_call import PoisonedCall
from seedgrid.diffusion.probe_findings import Findings, LeakFound
from seedgrid.diffusion.probe_results import Check, ProbeReport
from seedgrid.diffusion.replayed_call import Beginning, BeginningSeen, ReplayedCall
from seedgrid.diffusion.watched_parts import Watching
from seedgrid.diffusion.witness import Witness
from seedgrid.models.families import Family

_LONG_PROMPT: Final = " ".join(
    ["(misty:4) mountains above a (quiet:-4) lake at dawn, painted"] * 34
)
"""Where words are weighed, its brackets weigh one as much as can be, and one as little."""
_LONG_WEIGHED: Final = _LONG_PROMPT.replace(":4", ":3")
"""As long, and weighed otherwise."""


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


def run_probe(
    recipe: Recipe,
    compute: Compute,
    watch: Watch,
    *,
    family: Family,
    witness: Witness | None = None,
) -> ProbeReport:
    """Find the greatest width at which no leak is found.

    Args:
        recipe: Of the kind that is to be painted; its words and seed do not matter.
        compute: Runs a batch.
        watch: Asked before everything that takes long whether to give way.
        family: What may differ between the cells of a batch, and what is run at every step.
        witness: Watched a batch of such recipes that was painted here; without one, what is
            compared is run for the comparison.

    Raises:
        RunCancelled: `watch.cancelled` became true.
        RunError: A batch could not be computed, or its picture is none.
    """
    started = time.monotonic()
    checks: list[Check] = []
    tested_width = 0
    for width in _widths(recipe.lock_width):
        found = Findings(width)
        seen = witness if width == recipe.lock_width else None
        try:
            holds = _is_tight(_of_width(recipe, width), compute, watch, family, found, seen)
        except RunError as error:
            if not checks or error.code != "picture_nan":
                raise
            holds = False  # What leaked at a greater width, NaN, may have stayed in the model.
        checks += found.checks()
        if holds:
            tested_width = width
            break
    return ProbeReport(
        model=recipe.model.id,
        weights_sha256=recipe.model.weights_sha256,
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
    recipe: Recipe,
    compute: Compute,
    watch: Watch,
    family: Family,
    found: Findings,
    witness: Witness | None,
) -> bool:
    width = recipe.lock_width
    batch = Batch(width=width, own=min(1, width - 1))
    if witness is not None:
        recipe = witness.recipe
        # Pictures may be decoded in pairs: whose own row was a second one is a first one here.
        batch = Batch(width=width, own=min(1 - witness.slot % 2, width - 1))
    try:
        _compare_words(recipe, compute, watch, found)
        poisoned = PoisonedCall(batch, watch, found, witness)
        painted = compute(_placed([recipe], _company(recipe, family), batch), poisoned)
        own = [batch.own_rows(rows) for rows in painted]
        again = ReplayedCall(batch, watch, found, poisoned.record, compares=witness is None)
        turned = _placed([_stranger(recipe)], [recipe] * (width - 1), batch)
        found.note("picture", batch, own, compute(turned if width > 1 else [recipe], again))
        again.check_number_of_calls()
        found.require(f"denoiser ({family.denoiser})")
        if not is_finite(own):
            raise RunError("picture_nan")  # It is NaN by itself: leaks into it cannot be seen.
    except LeakFound:
        return False
    return True


def _compare_words(recipe: Recipe, compute: Compute, watch: Watch, found: Findings) -> None:
    """Read long words beside short ones and none, and beside a weighed one: up to the denoiser.

    The other way round, the recipe's own words are read beside long ones in the poisoned call.
    """
    width = recipe.lock_width
    if width == 1 or not recipe.prompt:
        return
    batch = Batch(width=width, own=0)
    own = _neighbour(recipe, 0, _LONG_PROMPT, _LONG_PROMPT)
    weighed = _neighbour(recipe, 1, _LONG_WEIGHED, _LONG_WEIGHED)
    short = [_neighbour(recipe, place, ("fox", "")[place % 2], "dull") for place in range(1, width)]
    read = []
    for cells in ([own, *short], [weighed] + [own] * (width - 1)):
        beginning = Beginning(batch, watch)
        with suppress(BeginningSeen):
            compute(cells, beginning)
        read.append(beginning.entered)
    beside, alike = read
    found.note("words", batch, [batch.own_rows(rows) for rows in beside], alike)


def _placed(own: list[Recipe], others: list[Recipe], batch: Batch) -> list[Recipe]:
    """Put the first into the own slot and the others around it."""
    return others[: batch.own] + own + others[batch.own :]


def _company(recipe: Recipe, family: Family) -> list[Recipe]:
    """Return the neighbours of a full batch.

    Every other one has words, and has negative ones and a mix of noises just where the recipe has
    none: cells of one batch may differ in all of them.
    """
    words = (_LONG_PROMPT, "fox", _reversed(recipe.prompt))
    negatives = (_LONG_PROMPT, "dull", "blurry")
    mix = () if recipe.noise_mix else (NoiseShare(seed=1, weight=0.5),)
    lacking = {"noise_mix": mix, "negative_prompt": "" if recipe.negative_prompt else "(dull:4)"}
    if family.zeroes_empty_negative:
        del lacking["negative_prompt"]
    found = []
    for place in range(recipe.lock_width - 1):
        each = _neighbour(recipe, place + 1, words[place % 3], negatives[place % 3])
        if family.has_prompt and place % 2 == 0:
            each = each.model_copy(update={"prompt": words[place % 3], **lacking})
        found.append(each)
    return found


def _stranger(recipe: Recipe) -> Recipe:
    """Return who sits in the own slot while the own picture is in all others."""
    return _neighbour(recipe, recipe.lock_width, _reversed(recipe.prompt), "grey")


def _reversed(words: str) -> str:
    """Return other words of that length; none of them weighs what no word may."""
    return words[::-1].replace("(", " ")


def _neighbour(recipe: Recipe, further: int, words: str, negative: str) -> Recipe:
    """Return a recipe with another seed and other words: none where the recipe has none.

    Whether there are negative ones may decide how many rows there are.
    """
    return recipe.model_copy(
        update={
            "seed": (recipe.seed + further) % 2**32,
            "prompt": recipe.prompt and words,
            "negative_prompt": recipe.negative_prompt and negative,
        }
    )
