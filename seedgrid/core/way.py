"""Steering: a variation that takes its parent's latents, in the first steps or outside a region.

A picture's latents are the same bits in every batch, so those of the parent are used again for the
variation. Knows recipes only; `diffusion/way.py` paints them.

    steer(parent, variation, hold=0.4)
"""

from dataclasses import dataclass
from typing import Any, Final

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import (
    MAX_FEATHER_PX,
    MAX_PARENTS,
    NoiseShare,
    Recipe,
    canonical_json,
)

MAX_HOLD: Final = 0.8
MIN_STEPS: Final = 4  # With fewer steps there is no first part that decides the composition

FREE: Final[dict[str, Any]] = {"parent": None, "held_steps": 0, "mask": "", "feather": 0}
"""The attributes of a recipe that follows no parent."""

_FEATHER_SHARE: Final = 16
_MAX_BYTES: Final = 128 * 1024  # Of a recipe with its parents: half of what a PNG's texts may take


@dataclass(frozen=True, kw_only=True)
class Region:
    """The part of a picture that is painted; see `Recipe.mask` and `Recipe.feather`."""

    mask: str
    feather: int


def steer(
    before: Recipe, after: Recipe, *, hold: float | None = None, region: Region | None = None
) -> Recipe:
    """Return a variation that follows `before`; if that follows a parent, so does the variation.

    `hold` is the share of the first steps that are the picture's, 0 to `MAX_HOLD`; without a
    `region` the whole picture is painted.

    Raises:
        InputError: `hold_range`, `hold_steps`, `way_deep`; `way_settings`: it differs from its
            parent in more than words and guidance.
    """
    held_steps = _held_steps(after, hold) if hold else 0
    if held_steps or region:
        follows_same = not (region or before.mask) and before.held_steps >= held_steps
        changes = FREE | {"parent": before.parent if follows_same else before}
        changes |= {"held_steps": held_steps}
        if region:
            changes |= {"mask": region.mask, "feather": region.feather}
        after = after.model_copy(update=changes)
    if after.parent is not None:
        if name := after.unlike(after.parent):
            raise InputError("way_settings", field="vary", name=name.replace("_", " "))
        num_parents = len(before.line) - 1
        if len(after.line) > MAX_PARENTS + 1 or len(canonical_json(after).encode()) > _MAX_BYTES:
            raise InputError("way_deep", field="vary", limit=num_parents)
    return after


def held_share(recipe: Recipe) -> float:
    """Return the share of the steps that are held, 0 to 0.8."""
    return recipe.held_steps / _steps_run(recipe)


def _steps_run(recipe: Recipe) -> int:
    """Return how many steps are run: image-to-image runs a part of them."""
    return max(1, int(recipe.num_inference_steps * recipe.strength))


def _held_steps(recipe: Recipe, hold: float) -> int:
    """Return how many of the steps that are run are held."""
    if not 0 <= hold <= MAX_HOLD:
        raise InputError("hold_range", field="hold", value=hold)
    steps = _steps_run(recipe)
    if steps < MIN_STEPS:
        raise InputError("hold_steps", field="hold", value=steps, limit=MIN_STEPS)
    return max(1, round(hold * steps))


def check_feather(feather: int | None, recipe: Recipe) -> int:
    """Return a feather in pixels; by default a sixteenth of the shorter side."""
    if feather is None:
        return min(recipe.width, recipe.height) // _FEATHER_SHARE
    if not 0 <= feather <= MAX_FEATHER_PX:
        raise InputError("feather_range", field="feather", value=feather, limit=MAX_FEATHER_PX)
    return feather


def with_share(recipe: Recipe, share: NoiseShare) -> Recipe:
    """Return a recipe, and its parents, with another seed's noise mixed in."""
    parent = with_share(recipe.parent, share) if recipe.parent else None
    return recipe.replace(noise_mix=(*recipe.noise_mix, share), parent=parent)
