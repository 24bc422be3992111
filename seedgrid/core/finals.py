"""Finals: a picture enlarged, and refined by image-to-image with its own seed and prompt.

The picture's own pixels are the start of a larger recipe, so a final is a recipe like any other.
Its lock width is 1: four would take four times the memory, and strengths cannot share a batch.
"""

from collections.abc import Sequence
from typing import Any, Final

import psutil

from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_size, check_start, check_strength
from seedgrid.core.errors import InputError, Notice
from seedgrid.core.recipe import MAX_SIZE_PX, MIN_SIZE_PX, Recipe, Upscaler
from seedgrid.core.variations import WITHOUT_PARENT

SCALES: Final = (2, 4)
STRENGTHS: Final = (0.2, 0.3, 0.4, 0.5)  # A low strength changes little, a high one adds detail

_MEMORY_SHARE: Final = 0.5  # Of the free memory; a final that needs more is decoded in tiles


def finals(
    parent: Recipe,
    card: ModelCard,
    *,
    start: str,
    scale: int,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[Recipe, ...]:
    """Return the recipes of a picture's finals, one for each strength.

    Raise `final_scale`; `final_model`: this model's finals are worse than a plain enlargement;
    `start_family`: the model has no image-to-image; or as `check_size` and `check_strength`.
    """
    larger = _larger(parent, scale)
    if not card.enlarges:
        raise InputError("final_model", field="model", value=card.ref.id)
    check_size((larger["width"], larger["height"]), card)
    larger["start"] = check_start(start, card)
    share = parent.strength if parent.start and card.strength_shortens else 1.0
    num_steps = max(1, int(parent.num_inference_steps * share))
    return tuple(
        parent.replace(
            **larger,
            upscaler=None,
            strength=check_strength(strength, card),
            num_inference_steps=card.steps_begun(num_steps, strength),
        )
        for strength in strengths
    )


def enlarged(parent: Recipe, upscaler: Upscaler, *, start: str, scale: int) -> Recipe:
    """Return the recipe of a picture's enlargement by a network; prompt and settings are copied.

    The network runs in float32 with native arithmetic. Raise `final_scale` or `size_range`.
    """
    how = {"upscaler": upscaler, "start": start, "strength": 1.0}
    return parent.replace(**_larger(parent, scale), **how, dtype="float32", arithmetic="native")


def _larger(parent: Recipe, scale: int) -> dict[str, Any]:
    """Return the attributes of a larger recipe: no parent, the size, and lock width 1."""
    if scale not in SCALES:
        raise InputError("final_scale", field="scale", value=scale)
    width, height = parent.width * scale, parent.height * scale
    if max(width, height) > MAX_SIZE_PX:
        sizes = {"low": MIN_SIZE_PX, "high": MAX_SIZE_PX}
        raise InputError("size_range", field="size", value=f"{width}x{height}", **sizes)
    return WITHOUT_PARENT | {"width": width, "height": height, "lock_width": 1}


def tiles_notices(recipe: Recipe, card: ModelCard) -> tuple[Notice, ...]:
    """Return a notice that a final is decoded in tiles, if the whole takes too much memory."""
    num_bytes = recipe.width * recipe.height * card.decoding_bytes
    if num_bytes <= _MEMORY_SHARE * free_bytes():
        return ()
    return (Notice("final_tiles", value=f"{num_bytes / 1e9:.1f}"),)


def free_bytes() -> int:
    """Return how much memory this machine has left."""
    return int(psutil.virtual_memory().available)
