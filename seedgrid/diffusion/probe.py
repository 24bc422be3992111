"""Test the lock: paint one picture in two short grids, beside mild and beside wild neighbours.

The neighbours' rows are replaced in the inputs of text encoder, denoiser and decoder, and in the
outputs of denoiser and decoder. In the first grid they are mild (near the own picture, or ordinary)
and the own picture is in the last slot; in the second they are wild (NaN or huge), with words of
other lengths, and it is in the first slot. The own rows of all inputs and outputs, and the final
picture before it is rounded, must be equal bit for bit. docs/lock.md says what this cannot find.
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
from seedgrid.diffusion.poison import BETWEEN, MILD, WILD, PoisonedGrid
from seedgrid.diffusion.probe_results import Check, ProbeReport
from seedgrid.models.families import Family

_MAX_STEPS: Final = 4  # Spread over the schedule: code and shapes do not change with their number
_LONG_PROMPT: Final = " ".join(  # With the greatest and smallest bracket weights
    ["(misty:4) mountains above a (quiet:-4) lake at dawn, painted"] * 34
)

# Computes W recipes, of which one (by its number) decides what may share its call, in a block;
# returns results with one row a cell
Compute = Callable[[Sequence[Recipe], int, CallContext], list[torch.Tensor]]


class _LeakFound(Exception):  # noqa: N818 (a signal, not an error)
    """A neighbour, or the slot, changed the own picture."""


def run_probe(recipe: Recipe, compute: Compute, watch: Watch, *, family: Family) -> ProbeReport:
    """Find the greatest width at which no leak is found; words and seed do not matter.

    `watch` may stop it before each call of a part. Raises RunCancelled; RunError if a batch could
    not be computed, `picture_nan` if the own picture is NaN.
    """
    started = time.monotonic()
    checks: list[Check] = []
    tested_width = 0
    steps = min(recipe.num_inference_steps, _MAX_STEPS)
    # With little strength, none of so few steps would be run from a start.
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
            # NaN that leaked at a greater width may persist in the model.
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
    """Compare the own picture beside mild and wild neighbours; NaN comes last: it may persist."""
    width = recipe.lock_width
    grid = partial(PoisonedGrid, watch=watch, width=width, has_lists=family.lists_words)
    # The neighbours change slowly: some caches skip steps then.
    mild = grid(see=comparison.keep, own=width - 1, kinds=MILD, pace=2)
    wild = grid(see=comparison.compare, own=0, kinds=WILD)
    others = [_neighbour(recipe, place) for place in range(1, width)]
    # Some pipelines look at the first negative words only.
    others[:1] = [each.model_copy(update=_other_negative(recipe, family)) for each in others[:1]]
    own = [mild.own_rows(rows) for rows in compute([*others, recipe], mild.own, mild.watching)]
    if not all(bool(torch.isfinite(rows).all()) for rows in own):
        raise RunError("picture_nan")  # It is NaN by itself: leaks into it cannot be seen.
    comparison.keep("picture", own)
    strangers = [_stranger(recipe, place, family) for place in range(1, width)]
    painted = compute([recipe, *strangers], wild.own, wild.watching)
    comparison.compare("picture", [wild.own_rows(rows) for rows in painted])
    comparison.end(f"denoiser ({family.denoiser})")


def _neighbour(recipe: Recipe, place: int) -> Recipe:
    """Return a recipe with the same words and another seed."""
    return recipe.model_copy(update={"seed": (recipe.seed + place) % 2**32})


def _stranger(recipe: Recipe, place: int, family: Family) -> Recipe:
    """Return a recipe with another seed and with longer words, shorter ones or none.

    Every other one has a mix of noises, and negative words, exactly if the recipe has none.
    """
    stranger = _neighbour(recipe, place + recipe.lock_width)
    if not family.has_prompt:
        return stranger
    changes: dict[str, Any] = {"prompt": (_LONG_PROMPT, "fox", "")[(place - 1) % 3]}
    if recipe.negative_prompt:
        changes["negative_prompt"] = (_LONG_PROMPT, "dull", "blurry")[(place - 1) % 3]
    if place % 2 and family.mixes_noise:
        changes["noise_mix"] = () if recipe.noise_mix else (NoiseShare(seed=1, weight=0.5),)
    if place % 2:
        changes |= _other_negative(recipe, family)
    return stranger.model_copy(update=changes)


def _other_negative(recipe: Recipe, family: Family) -> dict[str, str]:
    """Return negative words exactly if a recipe has none, where both may share a call."""
    if not family.has_negative_prompt or family.zeroes_empty_negative:
        return {}
    return {"negative_prompt": "" if recipe.negative_prompt else "(dull:4)"}


class _Comparison:
    """Keeps the own rows of the first grid and compares those of the second, in order."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._kept: list[tuple[str, list[torch.Tensor]]] = []
        self._next = 0
        self.checks: dict[str, Check] = {}

    def keep(self, part: str, rows: list[torch.Tensor]) -> None:
        self._kept.append((part, rows))

    def compare(self, part: str, rows: list[torch.Tensor]) -> None:
        kept_part, kept = self._kept[self._next] if self._next < len(self._kept) else ("", [])
        self._next += 1
        if kept_part != part or [t.shape for t in kept] != [t.shape for t in rows]:
            self._note(part, 1, 1)
        before = self.checks.get(part)
        compared = (before.compared if before else 0) + sum(tensor.numel() for tensor in rows)
        unequal = [(a, b) for a, b in zip(rows, kept, strict=True) if not torch.equal(a, b)]
        self._note(part, compared, sum(int((a != b).sum()) for a, b in unequal))

    def end(self, part: str) -> None:
        """Check that all kept rows were compared, and that this part was among them."""
        if self._next != len(self._kept):
            self._note(BETWEEN, 1, 1)
        if part not in self.checks:
            self._note(part, 1, 1)

    def _note(self, part: str, compared: int, differing: int) -> None:
        """Note the check of a part; raise _LeakFound if any value differs."""
        numbers = {"differing": differing, "compared": compared, "lock_width": self._width}
        self.checks[part] = Check(name=part, holds=not differing, **numbers)
        if differing:
            raise _LeakFound(part)
