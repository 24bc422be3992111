"""The lineage rail as JSON: every round of a work, named by what was changed in it.

Pure functions from rounds to plain values; knows no component and no handler.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seedgrid.engine import Run
from seedgrid.web.serializers import pictures
from seedgrid.web.serializers.changes import Change, round_name
from seedgrid.web.state.tree import Round

Json = dict[str, Any]


def rail(
    epoch: int,
    rounds: Sequence[Round],
    *,
    current: str | None,
    has_parent: bool,
    forming: Run | None = None,
) -> Json:
    """The lineage rail: each round's pictures, those ringed that were gone on from."""
    parents = {each.parent_id for each in rounds}
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
        # All that it will show: its name shall not change as its pictures come.
        changed[id_] = [(job.recipe, job.lineage.change) for job in forming.jobs]
    named = _named(shown, changed)
    return {"epoch": epoch, "rounds": named, "current": current, "has_parent": has_parent}


def _named(shown: Sequence[Json], changed: dict[str, list[Change]]) -> list[Json]:
    """Return the rounds with their names and changes: those of one parent tell themselves apart.

    Where a name says no more than that of a round before, `nth` counts: "Subtle 2".
    """
    tried: dict[str, set[str]] = {}  # by the round that was gone on from
    before: dict[tuple[str, str], set[frozenset[str]]] = {}  # and by the picture
    called: Counter[str] = Counter()
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
            called[called_so := f"{each['parent']} {name}"] += 1
            if called[called_so] > 1:
                name |= {"nth": called[called_so]}
        named.append(each | {"name": name, "changes": changes})
    return named


def _forming_round(run: Run, rounds: Sequence[Round]) -> Json:
    """A round without a finished picture, at the end of the rail: it can be gone to already."""
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
        "cells": [{"id": None, "picked": False} for _ in run.jobs],
    }
