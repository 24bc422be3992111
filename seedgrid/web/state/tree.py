"""The tree of a work: its pictures sorted into rounds, each on a lane, as the rail draws them.

Knows nothing of components or files: entries in, rounds out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from seedgrid.core.picture import Entry, without_circles


@dataclass(frozen=True, kw_only=True)
class Round:
    """One click on Generate or Refine.

    Attributes:
        parent_id: The picture that was refined; None for the first round.
        parent_round_id: The round of that picture.
        lane: 0 for the first line of refinements, one more for each branch beside it.
        entries: In the order of their cells.
    """

    id: str
    parent_id: str | None
    parent_round_id: str | None
    lane: int
    entries: tuple[Entry, ...]


def rounds_of(entries: Iterable[Entry]) -> tuple[Round, ...]:
    """Sort the pictures of one work into rounds: each after its parent, a line before its branches.

    Args:
        entries: The pictures of one work, in any order. A round whose parent is not among them
            (it was deleted) stands as a first round.
    """
    grouped = _by_round(entries)
    round_of = {entry.id: id_ for id_, cells in grouped.items() for entry in cells}
    parents = {i: round_of.get(cells[0].lineage.parent_id or "") for i, cells in grouped.items()}
    children: dict[str | None, list[str]] = {}
    for id_, parent_round_id in without_circles(parents).items():
        children.setdefault(parent_round_id, []).append(id_)
    rounds: list[Round] = []
    lanes = count()
    waiting: list[tuple[str, Round | None, int]] = [
        (id_, None, next(lanes)) for id_ in reversed(children.get(None, []))
    ]
    while waiting:
        id_, parent, lane = waiting.pop()
        here = _round(id_, grouped[id_], parent, lane)
        rounds.append(here)
        straight, branches = children.get(id_, [])[:1], children.get(id_, [])[1:]
        waiting += [(branch, here, next(lanes)) for branch in reversed(branches)]
        waiting += [(child, here, lane) for child in straight]
    return tuple(rounds)


def _round(id_: str, cells: tuple[Entry, ...], parent: Round | None, lane: int) -> Round:
    return Round(
        id=id_,
        parent_id=cells[0].lineage.parent_id if parent else None,
        parent_round_id=parent.id if parent else None,
        lane=lane,
        entries=cells,
    )


def living(rounds: Sequence[Round], current: str | None) -> tuple[Round, ...]:
    """Leave out what is all in the trash, unless the way to something else leads through it."""
    by_id = {each.id: each for each in rounds}
    wanted: set[str] = set()
    for each in rounds:
        is_seen = each.id == current or not all(entry.trashed for entry in each.entries)
        step = each if is_seen else None
        while step is not None and step.id not in wanted:
            wanted.add(step.id)
            step = by_id.get(step.parent_round_id or "")
    return tuple(each for each in rounds if each.id in wanted)


def path_to(rounds: Sequence[Round], round_id: str) -> tuple[Round, ...]:
    """Return the rounds from the first one to `round_id`."""
    by_id = {each.id: each for each in rounds}
    path: list[Round] = []
    current = by_id.get(round_id)
    while current is not None:
        path.append(current)
        current = by_id.get(current.parent_round_id or "")
    return tuple(reversed(path))


def _by_round(entries: Iterable[Entry]) -> dict[str, tuple[Entry, ...]]:
    """Group entries by round, rounds in the order they were made, cells in theirs."""
    ordered = sorted(entries, key=lambda e: (e.lineage.created_at, e.lineage.cell))
    grouped: dict[str, list[Entry]] = {}
    for entry in ordered:
        grouped.setdefault(entry.lineage.round_id, []).append(entry)
    return {id_: tuple(cells) for id_, cells in grouped.items()}
