"""What is done to several pictures of the library at once: trash, undo, marks."""

from __future__ import annotations

from typing import Any

import pytest

from seedgrid.core.picture import Entry
from seedgrid.library import Library
from seedgrid.studio import Studio
from seedgrid.web.actions.library import LibraryActions, Mark, Throw
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageState

SMALL: Any = {"width": 64, "height": 64, "num_inference_steps": 1}
ME = PageState(visitor="0" * 32)


@pytest.fixture
def selected(services: PageServices) -> LibraryActions:
    return services.library


def trash(selected: LibraryActions, **asked: Any) -> list[str]:
    outcome = selected.on_trash(Throw.model_validate(asked), ME)
    assert outcome.status is None
    return list(outcome.library["thrown"])


def thrown(library: Library) -> set[str]:
    return {entry.id for entry in library.search(trashed=True).entries}


def test_one_deletion_comes_back_at_once_and_nothing_else(
    selected: LibraryActions, studio: Studio, works: tuple[tuple[Entry, ...], ...]
) -> None:
    """Two works and a picture go together; what lay in the trash before stays there."""
    (before, other), house, (third, _) = works
    trash(selected, pictures=[before.id], trashed=True)
    ids = [entry.lineage.work_id for entry in (before, house[0])]
    went = trash(selected, works=ids, pictures=[third.id, house[0].id], trashed=True)
    assert set(went) == {other.id, house[0].id, house[1].id, third.id}
    assert thrown(studio.library) == {before.id, *went}
    assert trash(selected, pictures=went, trashed=False) == []
    assert thrown(studio.library) == {before.id}


def test_favourites_are_marked_together(
    selected: LibraryActions, studio: Studio, works: tuple[tuple[Entry, ...], ...]
) -> None:
    """Pictures and works in one call; and unmarked again."""
    (one, _), house, _ = works
    chosen = {"pictures": [one.id], "works": [house[0].lineage.work_id]}
    selected.on_mark(Mark.model_validate(chosen | {"favourite": True}), ME)
    found = studio.library.search(favourite=True).entries
    assert {entry.id for entry in found} == {one.id, *(entry.id for entry in house)}
    selected.on_mark(Mark.model_validate(chosen | {"favourite": False}), ME)
    assert not studio.library.search(favourite=True).entries


def test_a_picture_found_several_times_is_one_card(
    selected: LibraryActions, studio: Studio, works: tuple[tuple[Entry, ...], ...]
) -> None:
    """A recipe painted three times filled the search with one picture; its card is all of them."""
    again = [studio.grid("a red fox", seeds, **SMALL) for seeds in ("0-1", "0, 2")]
    same = [works[0][0], again[0][0], again[1][0]]
    others = {works[0][1].id, again[0][1].id, again[1][1].id}

    def found(**wanted: Any) -> dict[str, int]:
        page = studio.library.search("fox", merged=True, **wanted)
        assert {entry.id for entry in page.entries} == set(page.times)
        return dict(page.times)

    assert found() == {same[2].id: 3} | dict.fromkeys(others, 1)
    first = studio.library.search("fox", merged=True, limit=2)
    second = studio.library.search("fox", merged=True, limit=2, after=first.after)
    assert {**first.times, **second.times} == found()
    selected.on_mark(Mark.model_validate({"pictures": [same[1].id], "favourite": True}), ME)
    assert found(favourite=True) == {same[1].id: 1}
    assert found()[same[1].id] == 3  # the favourite stands for the rest
    went = trash(selected, equals=[same[1].id], trashed=True)
    assert set(went) == {entry.id for entry in same}
    assert found() == dict.fromkeys(others, 1)
    assert found(trashed=True) == {same[1].id: 3}
    trash(selected, equals=[same[1].id], trashed=False)
    assert found()[same[1].id] == 3
    assert (
        selected.on_trash(Throw.model_validate({"equals": ["f" * 32], "trashed": True}), ME).status
        is not None
    )


def test_a_card_of_works_alike_is_all_of_them(
    selected: LibraryActions, studio: Studio, works: tuple[tuple[Entry, ...], ...]
) -> None:
    """What was painted twice is one card: both go, both get the tag, both come back."""
    again = studio.grid("a red fox", "0, 9", **SMALL)
    twins = {entry.id for entry in (*works[0], *again)}
    card = next(work for work in studio.library.works().works if work.times == 2)
    selected.on_mark(Mark.model_validate({"works": [card.id], "add": ["twice"]}), ME)
    assert {entry.id for entry in studio.library.search(tag="twice").entries} == twins
    went = trash(selected, works=[card.id], trashed=True)
    assert set(went) == twins == thrown(studio.library)
    trash(selected, pictures=went, trashed=False)
    assert not thrown(studio.library)
