"""What was changed, as cells and rail show it, in no language: the page puts it into words.

Words and settings as they were written, noise by its share and seed. Knows no component.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from seedgrid.core.recipe import Recipe, describe_mix

Json = dict[str, Any]
Change = tuple[Recipe, str]
"""A recipe, and what its lineage says of how it came from its parent's."""

_SUBTLE_UP_TO: Final = 0.2
"""Weights between the two on offer were typed, or are those of another release."""
_LONGEST: Final = 60


def caption(recipe: Recipe, change: str) -> str:
    """A change as a caption: without the comma that glues it to the prompt; empty for noise."""
    return "" if is_noise(recipe, change) else change.lstrip(" ,;")[:_LONGEST]


def mix(recipe: Recipe, change: str) -> Json | None:
    """The last share of other noise, where that is what was changed."""
    return shares(recipe)[-1] if is_noise(recipe, change) else None


def shares(recipe: Recipe) -> list[Json]:
    """Every share of another seed's noise, in order: `percent` of the way towards `seed`."""
    return [{"percent": f"{100 * s.weight:g}", "seed": s.seed} for s in recipe.noise_mix]


def is_noise(recipe: Recipe, change: str) -> bool:
    """Tell whether the noise was changed, and nothing else."""
    return bool(recipe.noise_mix) and change == describe_mix(recipe)


def round_name(
    changed: Sequence[Change], before: Collection[frozenset[str]], tried: Collection[str]
) -> Json:
    """Name a round by what sets it apart from those that went on from the same pictures."""
    recipe, change = changed[0]
    changes = [each for _, each in changed if each]
    if not changes or frozenset(changes) in before:
        return {"key": "rail_again"}
    if is_noise(recipe, change):
        is_subtle = recipe.noise_mix[-1].weight <= _SUBTLE_UP_TO
        return {"key": "rail_subtle" if is_subtle else "rail_strong"}
    if recipe.start and change.startswith(f"{recipe.width}x{recipe.height}, "):
        return {"key": "rail_large", "data": {"width": recipe.width, "height": recipe.height}}
    own = [each for each in changes if each not in tried]
    if not own:
        return {"key": "rail_seed", "data": {"seed": recipe.seed}}
    return {"words": " · ".join(each.lstrip(" ,;") for each in own)[:_LONGEST]}
