"""A picture whose file is gone, or that is in the trash, on stage, rail, card and library."""

from __future__ import annotations

import pytest
from following import place_of

from seedgrid.core.picture import Entry
from seedgrid.studio import Studio
from seedgrid.web.actions.library import LibraryActions, Query
from seedgrid.web.state.snapshot import OneLibrary, Snapshots


@pytest.fixture
def snapshots(studio: Studio) -> Snapshots:
    return Snapshots(studio, OneLibrary(studio))


@pytest.fixture
def entries(studio: Studio) -> tuple[Entry, ...]:
    """A round of two."""
    return studio.grid("a red fox", "1-2", width=64, height=64)


def refined(studio: Studio, parent: Entry) -> tuple[Entry, ...]:
    return studio.start_refine(parent, [", artsy", ", trending"]).result()


def test_a_lost_picture_is_told_everywhere(
    studio: Studio, snapshots: Snapshots, entries: tuple[Entry, ...]
) -> None:
    """Stage, rail, card and library say it, so that no script asks for a file that is gone."""
    lost, whole = entries
    lost.path.unlink()
    state = place_of(lost)
    shown = snapshots.of(state).show()
    actions = LibraryActions(studio, snapshots)
    found = actions.on_search(Query(text="fox"), place_of(lost)).library
    assert [cell["lost"] for cell in shown.stage["cells"]] == [True, False]
    assert [cell["lost"] for cell in shown.rail["rounds"][0]["cells"]] == [True, False]
    assert shown.picked["lost"] is True
    assert {item["id"]: item["lost"] for item in found["items"]} == {lost.id: True, whole.id: False}


def test_the_trash_is_marked_on_the_stage(
    studio: Studio, snapshots: Snapshots, entries: tuple[Entry, ...]
) -> None:
    """A picture opened out of the trash stands at its place, and says where it is."""
    studio.library.trash(entries[1].id)
    shown = snapshots.of(place_of(entries[1])).show()
    assert [cell["trashed"] for cell in shown.stage["cells"]] == [False, True]
    assert shown.picked["trashed"] is True


def test_a_round_in_the_trash_leaves_the_rail(
    studio: Studio, snapshots: Snapshots, entries: tuple[Entry, ...]
) -> None:
    """Unless it is on the stage, or something that is kept was refined from it."""
    middle = refined(studio, entries[0])
    last = refined(studio, middle[0])
    aside = refined(studio, entries[1])
    studio.library.trash(*(entry.id for entry in (*middle, *aside)))

    def rounds(here: Entry) -> list[str]:
        rail = snapshots.of(place_of(here)).rail()
        return [each["id"] for each in rail["rounds"]]

    first, second, third, fourth = (
        each[0].lineage.round_id for each in (entries, middle, last, aside)
    )
    assert rounds(last[0]) == [first, second, third]
    assert rounds(aside[0]) == [first, second, third, fourth]
