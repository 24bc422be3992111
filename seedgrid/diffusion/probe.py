"""Test the lock: paint one picture in two batches of few steps, with different neighbours.

The neighbours' rows are replaced in the inputs of text encoder, denoiser and decoder, and in the
outputs of denoiser and decoder (poison.py). In the first batch the tested picture is in the last
slot, and its neighbours are realistic: near it, or its values in another order. In the second batch
it is in the first slot, and its neighbours are extreme: NaN or huge, with prompts of other lengths.
The tested picture's rows in inputs and outputs of denoiser and decoder, and the picture before it
is rounded, must be equal bit for bit. docs/lock.md says what this cannot find.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import torch

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import NoiseShare, Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.pipeline_call import CallContext
from seedgrid.diffusion.poison import EXTREME, INPUTS, REALISTIC, PoisonedGrid
from seedgrid.diffusion.probe_results import Check, ProbeReport
from seedgrid.models.families import Family

_MAX_STEPS: Final = 4  # Enough, as code and shapes do not depend on the number of steps
_LONG_PROMPT: Final = " ".join(  # With the greatest and smallest bracket weights
    ["(misty:4) mountains above a (quiet:-4) lake at dawn, painted"] * 34
)

# Computes a batch inside a context, and returns results with one row for each recipe. The int is
# the tested recipe's slot: recipes that cannot share its call are given its prompts.
Compute = Callable[[Sequence[Recipe], int, CallContext], list[torch.Tensor]]


class _LeakFound(Exception):  # noqa: N818 (a signal, not an error)
    """The neighbours, or the slot, changed the tested picture."""


def run_probe(recipe: Recipe, compute: Compute, watch: Watch, *, family: Family) -> ProbeReport:
    """Test the recipe's batch width, then 8, 4, 2 and 1, if less, until no leak is found.

    Raises RunCancelled if `watch.cancelled`, which is read at each call of a part of the pipeline;
    RunError if a batch fails, `picture_nan` if the tested picture itself is NaN.
    """
    started = time.monotonic()
    checks: list[Check] = []
    tested_width = 0
    steps = min(recipe.num_inference_steps, _MAX_STEPS)
    # From a start picture with a small strength, none of so few steps would be run.
    short = recipe.model_copy(update={"num_inference_steps": steps, "strength": 1.0})
    for width in [recipe.lock_width, *(w for w in (8, 4, 2, 1) if w < recipe.lock_width)]:
        comparison = _Comparison(width)
        narrow = short.model_copy(update={"lock_width": width})
        try:
            _paint_twice(narrow, compute, watch, family, comparison)
            tested_width = width
        except _LeakFound:
            pass
        except RunError as error:
            # NaN that leaked at a greater width may have stayed in the model's state.
            if not checks or error.code != "picture_nan":
                raise
        checks += comparison.checks.values()
        if tested_width:
            break
    return ProbeReport(
        model=recipe.model.id,
        weights_sha256=recipe.model.weights_sha256,
        dtype=recipe.dtype,
        size=f"{recipe.width}x{recipe.height}",
        scheduler=recipe.scheduler,
        num_inference_steps=steps,
        asked_width=recipe.lock_width,
        tested_width=tested_width,
        checks=tuple(checks),
        elapsed_s=round(time.monotonic() - started, 3),
        tested_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _paint_twice(
    recipe: Recipe, compute: Compute, watch: Watch, family: Family, comparison: _Comparison
) -> None:
    """Compare a picture in two batches, the extreme one last, as its NaN may stay in the model."""
    width = recipe.lock_width
    grid = partial(PoisonedGrid, watch=watch, width=width, has_lists=family.takes_embeds_list)
    # A neighbour has one kind for two calls: step caches skip a step only after similar inputs.
    first = grid(report=comparison.record, tested_slot=width - 1, kinds=REALISTIC, calls_per_kind=2)
    second = grid(report=comparison.compare, tested_slot=0, kinds=EXTREME)
    others = [_reseeded(recipe, number) for number in range(1, width)]
    # Some pipelines look only at the first negative prompt of the batch.
    others[:1] = [each.model_copy(update=_other_negative(recipe, family)) for each in others[:1]]
    painted = compute([*others, recipe], first.tested_slot, first.watching)
    tested = [first.tested_rows(rows) for rows in painted]
    if not all(bool(torch.isfinite(rows).all()) for rows in tested):
        raise RunError("picture_nan")  # NaN without any leak, so leaks would not be seen.
    comparison.record("picture", tested)
    others = [_reworded(recipe, number, family) for number in range(1, width)]
    painted = compute([recipe, *others], second.tested_slot, second.watching)
    comparison.compare("picture", [second.tested_rows(rows) for rows in painted])
    comparison.check_complete(f"denoiser ({family.denoiser})")


def _reseeded(recipe: Recipe, number: int) -> Recipe:
    """Return a recipe with the same prompts and another seed."""
    return recipe.model_copy(update={"seed": (recipe.seed + number) % 2**32})


def _reworded(recipe: Recipe, number: int, family: Family) -> Recipe:
    """Return a recipe with another seed and a longer prompt, a shorter one or an empty one.

    With an odd `number` it mixes noise, and has a negative prompt, exactly if the tested recipe
    does not, where the family allows it.
    """
    reseeded = _reseeded(recipe, number + recipe.lock_width)
    if not family.has_prompt:
        return reseeded
    changes: dict[str, Any] = {"prompt": (_LONG_PROMPT, "fox", "")[(number - 1) % 3]}
    if recipe.negative_prompt:
        changes["negative_prompt"] = (_LONG_PROMPT, "dull", "blurry")[(number - 1) % 3]
    if number % 2 and family.can_mix_noise:
        changes["noise_mix"] = () if recipe.noise_mix else (NoiseShare(seed=1, weight=0.5),)
    if number % 2:
        changes |= _other_negative(recipe, family)
    return reseeded.model_copy(update=changes)


def _other_negative(recipe: Recipe, family: Family) -> dict[str, str]:
    """Return an update that adds or removes the negative prompt, where one call allows both."""
    if not family.has_negative_prompt or family.zeroes_empty_negative:
        return {}
    return {"negative_prompt": "" if recipe.negative_prompt else "(dull:4)"}


class _Comparison:
    """Records the tested picture's rows in the first batch, and compares those of the second."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._recorded: list[tuple[str, list[torch.Tensor]]] = []
        self._num_compared = 0
        self.checks: dict[str, Check] = {}

    def record(self, part: str, rows: list[torch.Tensor]) -> None:
        self._recorded.append((part, rows))

    def compare(self, part: str, rows: list[torch.Tensor]) -> None:
        """Compare the next recorded rows with these; another part or shape counts as a leak."""
        has_next = self._num_compared < len(self._recorded)
        expected_part, expected = self._recorded[self._num_compared] if has_next else ("", [])
        self._num_compared += 1
        if expected_part != part or [t.shape for t in expected] != [t.shape for t in rows]:
            self._add_check(part, 1, 1)
        earlier = self.checks.get(part)
        compared = (earlier.compared if earlier else 0) + sum(tensor.numel() for tensor in rows)
        unequal = [(a, b) for a, b in zip(rows, expected, strict=True) if not torch.equal(a, b)]
        self._add_check(part, compared, sum(int((a != b).sum()) for a, b in unequal))

    def check_complete(self, part: str) -> None:
        """Check that all recorded rows were compared, and that this part was among them."""
        if self._num_compared != len(self._recorded):
            self._add_check(INPUTS, 1, 1)
        if part not in self.checks:
            self._add_check(part, 1, 1)

    def _add_check(self, part: str, compared: int, differing: int) -> None:
        """Add the check of a part; raise _LeakFound if any value differs."""
        numbers = {"differing": differing, "compared": compared, "lock_width": self._width}
        self.checks[part] = Check(name=part, holds=not differing, **numbers)
        if differing:
            raise _LeakFound(part)
