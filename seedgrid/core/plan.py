"""Plan: recipes become jobs, with their position in the tree of choices.

Knows nothing of who computes them, and changes no recipe. A first grid starts a new work; a
refinement belongs to the work of its parent, and says what was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seedgrid.core.entry import Entry
from seedgrid.core.picture import Lineage, new_id, now
from seedgrid.core.recipe import Recipe, describe_mix


@dataclass(frozen=True, kw_only=True)
class Job:
    """One picture to make: what it is, and where it stands in the tree of choices."""

    recipe: Recipe
    lineage: Lineage


def plan_grid(recipes: Sequence[Recipe]) -> tuple[Job, ...]:
    """Plan the first round of a new work: one cell a recipe, no parent."""
    return _plan(recipes, work_id=new_id(), parent_id=None, changes=[""] * len(recipes))


def plan_refine(parent: Entry, recipes: Sequence[Recipe]) -> tuple[Job, ...]:
    """Plan a round that goes on from a picture.

    Args:
        parent: The picture that was picked.
        recipes: Variations of its recipe.
    """
    changes = [describe_change(parent.recipe, recipe) for recipe in recipes]
    work_id = parent.lineage.work_id
    return _plan(recipes, work_id=work_id, parent_id=parent.id, changes=changes)


def describe_change(before: Recipe, after: Recipe) -> str:
    """Say in words what a variation changed: the words, or else the noise, or else settings.

    Returns:
        The suffix (`", artsy"`), the whole prompt when it is no longer form of the parent's,
        `"10% of seed 7"`, `"seed 8"`, or the settings that differ; empty when nothing does.
    """
    if after.words != before.words:
        added = after.words.removeprefix(before.words.rstrip())
        return added.strip() if added != after.words else after.words
    if after.noise_mix != before.noise_mix:
        return describe_mix(after)
    if after.seed != before.seed:
        return f"seed {after.seed}"
    fields = type(after).model_fields
    changed = [name for name in fields if getattr(before, name) != getattr(after, name)]
    return ", ".join(f"{name} {getattr(after, name)}" for name in changed)


def _plan(
    recipes: Sequence[Recipe], *, work_id: str, parent_id: str | None, changes: Sequence[str]
) -> tuple[Job, ...]:
    round_id, created_at = new_id(), now()
    return tuple(
        Job(
            recipe=recipe,
            lineage=Lineage(
                picture_id=new_id(),
                parent_id=parent_id,
                work_id=work_id,
                round_id=round_id,
                cell=cell,
                change=change,
                created_at=created_at,
            ),
        )
        for cell, (recipe, change) in enumerate(zip(recipes, changes, strict=True))
    )
