"""Plans rounds: recipes become jobs, each with its lineage in the tree of choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seedgrid.core.field import Field
from seedgrid.core.fields import FIELDS
from seedgrid.core.picture import Entry, Lineage, new_id, now
from seedgrid.core.recipe import MAX_PROMPT_CHARACTERS, Recipe, describe_mix
from seedgrid.core.request import Request, ask_again
from seedgrid.core.text import write_decimal
from seedgrid.core.variations import held_share

_SETTINGS: Final = tuple(
    setting
    for setting in FIELDS
    if setting.scope == "recipe" and setting.name not in ("prompt", "seeds", "mix")
)
_LONGEST: Final = 200  # Most characters of one setting in a caption


@dataclass(frozen=True, kw_only=True)
class Job:
    """One picture to paint: its recipe and its lineage."""

    recipe: Recipe
    lineage: Lineage


def plan_grid(recipes: Sequence[Recipe]) -> tuple[Job, ...]:
    """Plan the first round of a new work: one cell for each recipe, no parent."""
    return _plan([(recipe, None, "") for recipe in recipes], work_id=new_id())


def plan_again(entries: Sequence[Entry]) -> tuple[Job, ...]:
    """Plan a round with the same recipes and parents; a first grid becomes a new work."""
    lineage = entries[0].lineage
    cells = [(each.recipe, each.lineage.parent_id, each.lineage.change) for each in entries]
    return _plan(cells, work_id=lineage.work_id if lineage.parent_id else new_id())


def plan_refine(rows: Sequence[tuple[Entry, Sequence[Recipe]]]) -> tuple[Job, ...]:
    """Plan a round that refines pictures of one work; each is paired with its new recipes."""
    cells = [
        (recipe, parent.id, describe_change(parent.recipe, recipe))
        for parent, recipes in rows
        for recipe in recipes
    ]
    return _plan(cells, work_id=rows[0][0].lineage.work_id)


def describe_change(before: Recipe, after: Recipe) -> str:
    """Say in words what a variation changed: the words, the noise, then the settings.

    Joined by commas: the suffix (`, artsy`), or the whole prompt if it does not begin with the
    parent's; `10% of seed 7`; `hold 0.5`; `guidance 3`. Of a final: size, and strength or upscaler.
    """
    if after.start and after.start != before.start:
        how = after.upscaler.id if after.upscaler else f"strength {after.strength:g}"
        return f"{after.width}x{after.height}, {how}"
    parts = []
    if after.words != before.words:
        added = after.words.removeprefix(before.words.rstrip())
        parts.append(added.strip() if added != after.words else after.words)
    if after.noise_mix != before.noise_mix:
        parts.append(describe_mix(after))
    elif after.seed != before.seed:
        parts.append(f"seed {after.seed}")
    parts += _describe_steering(before, after)
    return ", ".join([*parts, *_settings_changed(before, after, has_other=bool(parts))])


def _describe_steering(before: Recipe, after: Recipe) -> list[str]:
    """Return `hold 0.5`, `only here` for a region; empty if parent and held steps are unchanged."""
    if after.parent is None or (after.parent, after.held_steps) == (
        before.parent,
        before.held_steps,
    ):
        return []
    held = [f"hold {held_share(after):.3g}"] if after.held_steps else []
    return [*held, *(["only here"] if after.mask else [])]


def _settings_changed(before: Recipe, after: Recipe, *, has_other: bool) -> list[str]:
    """List differing settings; those that no variation can set only if nothing else differs."""
    old, new = ask_again(before), ask_again(after)
    differing = [setting for setting in _SETTINGS if setting.value_in(old) != setting.value_in(new)]
    varied = [setting for setting in differing if setting.varies and not setting.decides_noise]
    shown = varied or ([] if has_other else differing)
    return [f"{setting.name} {_written(setting, old, new)}".strip()[:_LONGEST] for setting in shown]


def _written(setting: Field, old: Request, new: Request) -> str:
    """Return a value as typed in a variation; for the same LoRAs at one scale, only the number."""
    is_zero = setting.varies is not None and setting.value_in(new) == 0  # `text` may be empty then
    text = "0" if is_zero else setting.text(new)
    if setting.name == "model":
        name = text.partition("@")[0]
        return text if setting.text(old).startswith(f"{name}@") else name
    scales = {lora.scale for lora in new.loras} if setting.name == "lora" else set()
    is_same = [lora.id for lora in old.loras] == [lora.id for lora in new.loras]
    return write_decimal(*scales) if is_same and len(scales) == 1 else text


def _plan(cells: Sequence[tuple[Recipe, str | None, str]], *, work_id: str) -> tuple[Job, ...]:
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
                change=change[:MAX_PROMPT_CHARACTERS],
                created_at=created_at,
            ),
        )
        for cell, (recipe, parent_id, change) in enumerate(cells)
    )
