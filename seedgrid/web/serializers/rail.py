"""The tree of a work: its pictures sorted into rounds, each on a lane, and the rail as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from seedgrid.core.picture import Entry, without_circles
from seedgrid.engine import Run
from seedgrid.web.serializers import pictures
from seedgrid.web.serializers.pictures import Change, round_name

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Round:
    """The pictures of one click on Generate or Refine, in the order of their cells.

    `parent_id` is the refined picture; `lane` is 0 for the first line of refinements, then 1, 2, ….
    """

    id: str
    parent_id: str | None
    parent_round_id: str | None
    lane: int
    entries: tuple[Entry, ...]


def rounds_of(entries: Iterable[Entry]) -> tuple[Round, ...]:
    """Sort a work's pictures into rounds, parents first; one without its parent is a first one."""
    grouped = _by_round(entries)
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
        id_, parent, straight = waiting.pop()
        this_round = Round(
            id=id_,
            parent_id=grouped[id_][0].lineage.parent_id if parent else None,
            parent_round_id=parent.id if parent else None,
            lane=next(lanes) if straight is None else straight,  # from left to right
            entries=grouped[id_],
        )
        rounds.append(this_round)
        first, branches = children.get(id_, [])[:1], children.get(id_, [])[1:]
        waiting += [(branch, this_round, None) for branch in reversed(branches)]
        waiting += [(child, this_round, this_round.lane) for child in first]
    return tuple(rounds)


def living(rounds: Sequence[Round], current: str | None) -> tuple[Round, ...]:
    """Leave out rounds that are all in the trash, unless another round descends from them."""
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


def _by_round(entries: Iterable[Entry]) -> dict[str, tuple[Entry, ...]]:
    """Group entries by round, rounds by time, entries by cell."""
    ordered = sorted(entries, key=lambda e: (e.lineage.created_at, e.lineage.cell))
    grouped: dict[str, list[Entry]] = {}
    for entry in ordered:
        grouped.setdefault(entry.lineage.round_id, []).append(entry)
    return {id_: tuple(cells) for id_, cells in grouped.items()}


def rail(
    epoch: int,
    rounds: Sequence[Round],
    *,
    current: str | None,
    has_parent: bool,
    forming: Run | None = None,
) -> Json:
    """The lineage rail: each round's pictures; those with refinements are ringed (`picked`)."""
    parents = {entry.lineage.parent_id for each in rounds for entry in each.entries}
    shown: list[Json] = [
        {
            "id": each.id,
            "parent": each.parent_round_id,
            "from": each.parent_id,
            "lane": each.lane,
            "words": each.entries[0].recipe.words,
            "cells": [pictures.thumb(e) | {"picked": e.id in parents} for e in each.entries],
        }
        for each in rounds
    ]
    changed = {each.id: [(e.recipe, e.lineage.change) for e in each.entries] for each in rounds}
    if forming is not None:
        id_ = forming.lineage.round_id
        if id_ not in changed:
            shown.append(_forming_round(forming, rounds))
        # All jobs, so that its name does not change as pictures are finished.
        jobs = [forming.jobs[cell] for cell in forming.round_cells]
        changed[id_] = [(job.recipe, job.lineage.change) for job in jobs]
    named = _named(shown, changed)
    return {"epoch": epoch, "rounds": named, "current": current, "has_parent": has_parent}


def _named(shown: Sequence[Json], changed: dict[str, list[Change]]) -> list[Json]:
    """Return the rounds with their names and changes; equal names are counted: "Subtle 2"."""
    tried: dict[str, set[str]] = {}  # by the parent's round
    before: dict[tuple[str, str], set[frozenset[str]]] = {}  # by the parent's round and the parent
    counted: Counter[str] = Counter()
    named = []
    for each in shown:
        changes = [change for _, change in changed[each["id"]] if change]
        name: Json = {"key": "rail_seeds"}
        if each["parent"]:
            words = tried.setdefault(each["parent"], set())
            same = before.setdefault((each["parent"], each["from"]), set())
            name = round_name(changed[each["id"]], same, words)
            words.update(changes)
            same.add(frozenset(changes))
            counted[key := f"{each['parent']} {name}"] += 1
            if counted[key] > 1:
                name |= {"nth": counted[key]}
        named.append(each | {"name": name, "changes": changes})
    return named


def _forming_round(run: Run, rounds: Sequence[Round]) -> Json:
    """A round without a finished picture, at the end of the rail."""
    parent_id = run.lineage.parent_id
    parent = next((r for r in rounds if parent_id in {e.id for e in r.entries}), None)
    is_branch = parent is not None and any(r.parent_round_id == parent.id for r in rounds)
    new_lane = max((each.lane for each in rounds), default=-1) + 1
    return {
        "id": run.lineage.round_id,
        "parent": parent.id if parent else None,
        "from": parent_id,
        "lane": parent.lane if parent and not is_branch else new_lane,
        "words": run.jobs[0].recipe.words,
        "cells": [{"id": None, "picked": False} for _ in run.round_cells],
    }
