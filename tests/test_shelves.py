"""Whose pictures are whose: one library at home, one a visitor on a Space."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedgrid.diffusion.backend import Placement
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.actions.form import Asked
from seedgrid.web.actions.library import Keep
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.serializers.answers import Shown
from seedgrid.web.state.page_state import Place
from seedgrid.web.state.snapshot import Presenter
from seedgrid.web.state.visitor_libraries import OneShelf, VisitorShelves

ASKED = Asked(prompt="a red fox", seeds="5-6", steps="1", size="64x64")
ANNA, BERT = (Place(visitor=letter * 32).to_browser() for letter in "ab")


def paint(handlers: Handlers, kept: object) -> Shown:
    shown = handlers.on_generate(ASKED, kept)
    assert shown.place is not None
    list(handlers.follow(shown.place.to_browser()))
    return shown


def count(keep: Keep, kept: object) -> int:
    answer = keep.on_search({}, kept)
    assert answer is not None
    return len(answer["items"])


def test_visitors_of_a_space_see_only_their_own(tmp_path: Path) -> None:
    """The library of one shows nothing of the other's, and remembers nothing for the other."""
    backend = FakeBackend()
    shelves = VisitorShelves(tmp_path / "visitors")
    with Studio(library=tmp_path / "api", backend=backend, placement=Placement()) as studio:
        page = Presenter(studio, shelves)
        handlers, keep = Handlers(studio, shelves, page), Keep(studio, shelves, page)
        paint(handlers, ANNA)
        assert (count(keep, ANNA), count(keep, BERT)) == (1, 0)
        paint(handlers, BERT)
        assert (count(keep, ANNA), count(keep, BERT)) == (1, 1)
    assert len(backend.calls) == 2


def test_a_picture_of_any_visitor_is_found_by_its_id(tmp_path: Path) -> None:
    """Who was shown an id may ask for the picture, its round and its work, without the trash."""
    shelves = VisitorShelves(tmp_path / "visitors")
    with Studio(library=tmp_path / "api", backend=FakeBackend()) as studio:
        shown = paint(Handlers(studio, shelves, Presenter(studio, shelves)), ANNA)
        assert shown.place is not None
        entries = shelves.of("a" * 32).work(shown.place.work or "")
        assert shelves.file_of(entries[1].id) == entries[1].path
        assert shelves.family(entries[1].id, scope="round") == entries
        assert shelves.family(entries[1].id, scope="picture") == entries[1:]
        shelves.of("a" * 32).trash(entries[1].id)
        assert shelves.family(entries[0].id, scope="work") == entries[:1]
        named = shelves.family(entries[1].id, scope="work")
        assert [entry.id for entry in named] == [entry.id for entry in entries]
    assert shelves.file_of("f" * 32) is None
    assert shelves.family("f" * 32, scope="work") == ()


def test_the_library_of_a_visitor_who_stays_away_is_deleted(tmp_path: Path) -> None:
    """The next visit of anybody sweeps it; who comes back begins anew."""
    shelves = VisitorShelves(tmp_path, away_s=0.0)
    folder = shelves.of("a" * 32).folder
    assert folder.is_dir()
    shelves.of("b" * 32)
    assert not folder.exists()
    assert shelves.of("a" * 32).folder == folder


@pytest.mark.parametrize("visitor", ["a" * 32, "b" * 32])
def test_at_home_there_is_one_library(tmp_path: Path, visitor: str) -> None:
    """Whoever looks, it is the studio's."""
    with Studio(library=tmp_path, backend=FakeBackend()) as studio:
        assert OneShelf(studio).of(visitor) is studio.library
