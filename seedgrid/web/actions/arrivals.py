"""Where the page's own address leads: to a round or a picture. Starts nothing."""

from seedgrid.web.state.snapshot import Snapshot
from seedgrid.web.state.tree import Round


def find_place(here: Snapshot, place: str) -> Snapshot | None:
    """Look at the place that an address names; None when this library does not have it.

    Args:
        here: Where the browser was: its own round may still be forming.
        place: A round, or a picture, which is then picked.
    """
    entry = here.find(place)
    if entry is not None:
        lineage = entry.lineage
        return here.moved(work=lineage.work_id, round=lineage.round_id, picked=entry.id)
    if place == here.state.round and (here.round or here.is_forming):
        return here
    if here.run is not None and here.run.lineage.round_id == place:
        lineage = here.run.lineage
        return here.moved(work=lineage.work_id, round=place, picked=lineage.parent_id)
    entries = here.library.round(place)
    if not entries:
        return None
    there = here.moved(work=entries[0].lineage.work_id, round=place, picked=None)
    return there.moved(picked=pick_of(there.round, there.rounds)) if there.round else there


def pick_of(shown: Round, rounds: tuple[Round, ...]) -> str | None:
    """Return what is picked when one comes to a round.

    The last of its pictures that was refined; where none was, the picture that it refines.
    """
    refined = [each.parent_id for each in rounds if each.parent_round_id == shown.id]
    return refined[-1] if refined else shown.parent_id
