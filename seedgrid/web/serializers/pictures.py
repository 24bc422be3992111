"""Pictures as JSON for the page: a cell, a thumbnail, a card, a library item, the lineage rail.

Each finished picture says whether its file is lost, so that the page never asks for it, and whether
it is in the trash. Noise changes are sent as shares and seeds; the page puts them into words.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from seedgrid.core.card import ModelCard
from seedgrid.core.picture import Entry, without_circles
from seedgrid.core.prompts import compare_words
from seedgrid.core.recipe import Recipe, describe_mix
from seedgrid.core.text import picture_filename
from seedgrid.core.variations import fours
from seedgrid.engine import Job, Run
from seedgrid.formats.links import link_query
from seedgrid.library.search import Work
from seedgrid.models.schedulers import names_like

Json = dict[str, Any]
Made = Entry | Job  # A picture, or the job of one: both have a recipe and a lineage

_SUBTLE_UP_TO: Final = 0.2  # Weights up to this are called subtle
_LONGEST: Final = 60  # Characters of a caption or of a round's name


def cell(made: Made, state: str) -> Json:
    """A picture on the stage, before it is finished."""
    return {
        "state": state,
        "seed": made.recipe.seed,
        "prompt": made.recipe.words,
        "words": caption(made),
        "mix": _shares(made.recipe)[-1] if _is_noise(made) else None,
        "locked": made.lineage.parent_id is not None,
    }


def finished_cell(entry: Entry) -> Json:
    """A cell of the stage with a finished picture."""
    file = picture_filename(entry.recipe.prompt, entry.recipe.seed, entry.lineage.change)
    return thumb(entry) | cell(entry, "done") | {"favourite": entry.favourite, "file": file}


def thumb(entry: Entry) -> Json:
    """A picture on the rail."""
    return {"id": entry.id, "lost": entry.lost, "trashed": entry.trashed}


def card(
    entry: Entry, parent: Entry | None, model: ModelCard | None, models: Sequence[str]
) -> Json:
    """The picked picture: its seed, its words compared with its parent's, its settings.

    `model` is the card of its model, if installed; `models` are others with equally shaped noise.
    """
    recipe = entry.recipe
    before = parent.recipe.words if parent else recipe.words
    names = names_like(recipe.scheduler)
    schedulers = tuple(name for name in names if model is None or name in model.schedulers)
    return thumb(entry) | {
        "parent": parent.id if parent and not parent.lost else None,
        "seed": recipe.seed,
        "mix": _shares(recipe),
        "neighbour": entry.lineage.cell + 1 if _is_noise(entry) else None,
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
        "portable": recipe.is_portable,
        "negative": recipe.negative_prompt,
        "strength": "" if recipe.upscaler or not recipe.start else f"{recipe.strength:g}",
        "upscaler": recipe.upscaler.id if recipe.upscaler else "",
        "begun": bool(recipe.start),
        "favourite": entry.favourite,
        "note": entry.note,
        "checked": entry.checked,
        "link": link_query(recipe),
        "file": picture_filename(recipe.prompt, recipe.seed, entry.lineage.change),
        "fours": {} if recipe.upscaler else fours(recipe, schedulers, models),
    }


def item(entry: Entry, work: Work | None = None, *, times: int = 1) -> Json:
    """A picture in the library, or a work by its newest picture; `times` counts the equal ones."""
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


def caption(made: Made) -> str:
    """The picture's change as a caption, without its leading comma; empty for a change of noise."""
    return "" if _is_noise(made) else made.lineage.change.lstrip(" ,;")[:_LONGEST]


def _shares(recipe: Recipe) -> list[Json]:
    return [{"percent": f"{100 * s.weight:g}", "seed": s.seed} for s in recipe.noise_mix]


def _is_noise(made: Made) -> bool:
    """Tell whether the change is of the noise alone."""
    return bool(made.recipe.noise_mix) and made.lineage.change == describe_mix(made.recipe)


@dataclass(frozen=True, kw_only=True)
class Round:
    """The pictures of one click on Generate or Refine, in the order of their cells.

    `parent_id` is the refined picture. `lane` is the round's column on the rail, 0 for the first: a
    round's first refinement stays in its lane, each further one begins a new lane.
    """

    id: str
    parent_id: str | None
    parent_round_id: str | None
    lane: int
    entries: tuple[Entry, ...]


def rounds_of(entries: Iterable[Entry]) -> tuple[Round, ...]:
    """Sort a work's pictures into rounds, parents first; a round without a parent is a root."""
    grouped: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.lineage.created_at, e.lineage.cell)):
        grouped.setdefault(entry.lineage.round_id, []).append(entry)
    round_of = {entry.id: id_ for id_, cells in grouped.items() for entry in cells}
    parents = {i: round_of.get(cells[0].lineage.parent_id or "") for i, cells in grouped.items()}
    children: dict[str | None, list[str]] = {}
    for id_, parent_round_id in without_circles(parents).items():
        children.setdefault(parent_round_id, []).append(id_)
    rounds: list[Round] = []
    lanes = count()
    waiting: list[tuple[str, Round | None, int | None]] = [
        (id_, None, None) for id_ in reversed(children.get(None, []))
    ]
    while waiting:
        id_, parent, lane = waiting.pop()
        this_round = Round(
            id=id_,
            parent_id=grouped[id_][0].lineage.parent_id if parent else None,
            parent_round_id=parent.id if parent else None,
            lane=next(lanes) if lane is None else lane,  # From left to right
            entries=tuple(grouped[id_]),
        )
        rounds.append(this_round)
        first, branches = children.get(id_, [])[:1], children.get(id_, [])[1:]
        waiting += [(branch, this_round, None) for branch in reversed(branches)]
        waiting += [(child, this_round, this_round.lane) for child in first]
    return tuple(rounds)


def without_trashed(rounds: Sequence[Round], current: str | None) -> tuple[Round, ...]:
    """Leave out rounds that are all in the trash, except `current` and ancestors of shown ones."""
    kept_ids: set[str | None] = {current}
    for each in reversed(rounds):  # each comes after its parent
        if each.id in kept_ids or not all(entry.trashed for entry in each.entries):
            kept_ids |= {each.id, each.parent_round_id}
    return tuple(each for each in rounds if each.id in kept_ids)


def path_to(rounds: Sequence[Round], round_id: str) -> tuple[Round, ...]:
    """Return the rounds from the first one to `round_id`."""
    path: list[Round] = []
    next_id: str | None = round_id
    for each in reversed(rounds):  # each comes after its parent
        if each.id == next_id:
            path.insert(0, each)
            next_id = each.parent_round_id
    return tuple(path)


def rail(rounds: Sequence[Round], forming: Run | None) -> list[Json]:
    """The lineage rail: each round's pictures; those with refinements are ringed (`picked`).

    `forming` is a run whose round is not finished. Equal names are counted: "Subtle 2".
    """
    made: dict[str, Sequence[Made]] = {each.id: each.entries for each in rounds}
    if forming is not None:
        if forming.lineage.round_id not in made:
            rounds = (*rounds, _forming_round(forming, rounds))
        # All jobs, so that the round's name does not change while pictures are finished.
        made[forming.lineage.round_id] = forming.round_jobs
    parents = {entry.lineage.parent_id for each in rounds for entry in each.entries}
    tried: dict[str, set[str]] = {}  # Earlier siblings' changes, by the parent's round
    before: dict[tuple[str, str | None], set[frozenset[str]]] = {}  # Sets of them, by parent too
    counted: Counter[str] = Counter()
    shown: list[Json] = []
    for each in rounds:
        changes = [one.lineage.change for one in made[each.id] if one.lineage.change]
        name: Json = {"key": "rail_seeds"}
        if each.parent_round_id:
            words = tried.setdefault(each.parent_round_id, set())
            same = before.setdefault((each.parent_round_id, each.parent_id), set())
            name = _round_name(made[each.id], same, words)
            words.update(changes)
            same.add(frozenset(changes))
            counted[key := f"{each.parent_round_id} {name}"] += 1
            if counted[key] > 1:
                name |= {"nth": counted[key]}
        cells = [thumb(entry) | {"picked": entry.id in parents} for entry in each.entries]
        shown.append(
            {
                "id": each.id,
                "parent": each.parent_round_id,
                "from": each.parent_id,
                "lane": each.lane,
                "words": (each.entries or made[each.id])[0].recipe.words,
                "cells": cells or [{"id": None, "picked": False} for _ in made[each.id]],
                "name": name,
                "changes": changes,
            }
        )
    return shown


def _round_name(
    made: Sequence[Made], before: Collection[frozenset[str]], tried: Collection[str]
) -> Json:
    """Name a round; `before` has earlier siblings' sets of changes, `tried` their single ones."""
    recipe, change = made[0].recipe, made[0].lineage.change
    changes = [each.lineage.change for each in made if each.lineage.change]
    if not changes or frozenset(changes) in before:
        return {"key": "rail_again"}
    if _is_noise(made[0]):
        is_subtle = recipe.noise_mix[-1].weight <= _SUBTLE_UP_TO
        return {"key": "rail_subtle" if is_subtle else "rail_strong"}
    if recipe.start and change.startswith(f"{recipe.width}x{recipe.height}, "):
        return {"key": "rail_large", "data": {"width": recipe.width, "height": recipe.height}}
    own = [each for each in changes if each not in tried]
    if not own:
        return {"key": "rail_seed", "data": {"seed": recipe.seed}}
    return {"words": " · ".join(each.lstrip(" ,;") for each in own)[:_LONGEST]}


def _forming_round(run: Run, rounds: Sequence[Round]) -> Round:
    """A round without a finished picture, at the end of the rail."""
    parent_id = run.lineage.parent_id
    parent = next((r for r in rounds if parent_id in {e.id for e in r.entries}), None)
    is_branch = parent is not None and any(r.parent_round_id == parent.id for r in rounds)
    new_lane = max((each.lane for each in rounds), default=-1) + 1
    return Round(
        id=run.lineage.round_id,
        parent_id=parent_id,
        parent_round_id=parent.id if parent else None,
        lane=parent.lane if parent and not is_branch else new_lane,
        entries=(),
    )
