"""One picture as JSON for the page: a cell, a thumbnail, a card, an item of the library.

Each says whether the file is lost, so that the page never asks for it, and whether it is in the
trash. Changes of the noise are share and seed: the page puts them into words.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from PIL import Image

from seedgrid.core.card import ModelCard
from seedgrid.core.picture import Entry, Lineage
from seedgrid.core.prompts import compare_words
from seedgrid.core.recipe import Passport, Recipe, describe_mix
from seedgrid.core.text import one_line, picture_filename
from seedgrid.core.variations import fours
from seedgrid.formats.links import link_query
from seedgrid.library.search import Work
from seedgrid.models.schedulers import names_like
from seedgrid.storage.unpacking import unpacked

Json = dict[str, Any]
Change = tuple[Recipe, str]  # A recipe, and the change of its lineage

_SUBTLE_UP_TO: Final = 0.2  # Weights up to this are called subtle
_LONGEST: Final = 60


def small(path: Path, side_px: int, *, quality: int, kind: str = "JPEG") -> bytes:
    """Return a PNG file as a JPEG, or another kind, of at most `side_px` pixels along a side."""
    with unpacked(path.read_bytes()) as image:
        thumbnail = image.convert("RGB")
    thumbnail.thumbnail((side_px, side_px), Image.Resampling.LANCZOS)
    target = io.BytesIO()
    thumbnail.save(target, kind, quality=quality)
    return target.getvalue()


def cell(recipe: Recipe, lineage: Lineage, state: str) -> Json:
    """A picture on the stage, before it is finished."""
    return {
        "state": state,
        "seed": recipe.seed,
        "prompt": recipe.words,
        "words": caption(recipe, lineage.change),
        "mix": mix(recipe, lineage.change),
        "locked": lineage.parent_id is not None,
    }


def finished_cell(entry: Entry) -> Json:
    """A cell of the stage with a finished picture."""
    file = picture_filename(entry.recipe.prompt, entry.recipe.seed, entry.lineage.change)
    known = cell(entry.recipe, entry.lineage, "done")
    return thumb(entry) | known | {"favourite": entry.favourite, "file": file}


def thumb(entry: Entry) -> Json:
    """A picture on the rail."""
    return {"id": entry.id, "lost": entry.lost, "trashed": entry.trashed}


def card(
    entry: Entry,
    parent: Entry | None,
    *,
    hint: str | None,
    lock: Json | None,
    model: ModelCard | None,
    models: Sequence[str] = (),
    is_spread: bool = False,
) -> Json:
    """The picked picture: its seed, its words compared with its parent's, its settings.

    `model` is the card of its model, if installed; `models` are others that can paint its seed.
    With `is_spread` (several computers paint) the card names the device.
    """
    recipe = entry.recipe
    before = parent.recipe.words if parent else recipe.words
    is_neighbour = is_noise(recipe, entry.lineage.change)
    names = names_like(recipe.scheduler)
    schedulers = tuple(name for name in names if model is None or name in model.schedulers)
    return thumb(entry) | {
        "parent": parent.id if parent and not parent.lost else None,
        "seed": recipe.seed,
        "mix": shares(recipe),
        "neighbour": entry.lineage.cell + 1 if is_neighbour else None,
        "pieces": [[piece.kind, piece.text] for piece in compare_words(before, recipe.words)],
        "painted": recipe.prompt if recipe.typed_prompt else None,
        "width": recipe.width,
        "height": recipe.height,
        "steps": recipe.num_inference_steps,
        "guidance": f"{recipe.guidance_scale:g}",
        "scheduler": recipe.scheduler,
        "usual_scheduler": model.scheduler if model else recipe.scheduler,
        "model": recipe.model.id,
        "loras": [f"{lora.id} {lora.scale:g}" for lora in recipe.loras],
        "where": _where(entry.passport) if is_spread else "",
        "portable": recipe.is_portable,
        "negative": recipe.negative_prompt,
        "strength": "" if recipe.upscaler or not recipe.start else f"{recipe.strength:g}",
        "upscaler": recipe.upscaler.id if recipe.upscaler else "",
        "begun": bool(recipe.start),
        "favourite": entry.favourite,
        "note": entry.note,
        "hint": hint,
        "lock": lock,
        "checked": entry.checked,
        "link": link_query(recipe),
        "file": picture_filename(recipe.prompt, recipe.seed, entry.lineage.change),
        "fours": {} if recipe.upscaler else fours(recipe, schedulers, models),
    }


def _where(passport: Passport) -> str:
    """Name a device; a processor with its instruction set, since its name leaves that open."""
    kind = passport.cpu_capability if passport.device == "cpu" else ""
    return one_line(", ".join(filter(None, (passport.device_name, kind))), limit=60)


def no_picture() -> Json:
    """The card before a picture is picked."""
    return {"id": None}


def item(entry: Entry, work: Work | None = None, *, times: int = 1) -> Json:
    """A picture in the library, or a work by its newest picture; `times` are equal."""
    return thumb(entry) | {
        "work": entry.lineage.work_id,
        "prompt": entry.recipe.words,
        "seed": entry.recipe.seed,
        "favourite": entry.favourite,
        "width": entry.recipe.width,
        "height": entry.recipe.height,
        "tags": list(entry.tags),
        "count": work.num_pictures if work else None,
        "times": work.times if work else times,
    }


def caption(recipe: Recipe, change: str) -> str:
    """A change as a caption, without the comma before it; empty for noise."""
    return "" if is_noise(recipe, change) else change.lstrip(" ,;")[:_LONGEST]


def mix(recipe: Recipe, change: str) -> Json | None:
    """The last share of other noise, where that is the change."""
    return shares(recipe)[-1] if is_noise(recipe, change) else None


def shares(recipe: Recipe) -> list[Json]:
    """All shares of the noise mix, in order."""
    return [{"percent": f"{100 * s.weight:g}", "seed": s.seed} for s in recipe.noise_mix]


def is_noise(recipe: Recipe, change: str) -> bool:
    """Tell whether the change is of the noise alone."""
    return bool(recipe.noise_mix) and change == describe_mix(recipe)


def round_name(
    changed: Sequence[Change], before: Collection[frozenset[str]], tried: Collection[str]
) -> Json:
    """Name a round by what sets it apart: `before` and `tried` are changes of its siblings."""
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
