"""Whose pictures are whose: one library at home, one a visitor on a Space."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedgrid.diffusion.backend import Placement
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.actions.form import Asked
from seedgrid.web.actions.library import LibraryActions
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.state.page_state import PageState
from seedgrid.web.state.snapshot import Snapshots
from seedgrid.web.state.visitor_libraries import OneLibrary, VisitorLibraries

ASKED = Asked(prompt="a red fox", seeds="5-6", steps="1", size="64x64")
ANNA, BERT = (PageState(visitor=letter * 32).to_browser() for letter in "ab")


def paint(handlers: Handlers, kept: object) -> PageUpdate:
    shown = handlers.on_generate(ASKED, kept)
    assert shown.state is not None
    list(handlers.follow(shown.state.to_browser()))
    return shown


def count(actions: LibraryActions, kept: object) -> int:
    answer = actions.on_search({}, kept)
    assert answer is not None
    return len(answer["items"])


def test_visitors_of_a_space_see_only_their_own(tmp_path: Path) -> None:
    """The library of one shows nothing of the other's, and remembers nothing for the other."""
    backend = FakeBackend()
    libraries = VisitorLibraries(tmp_path / "visitors")
    with Studio(library=tmp_path / "api", backend=backend, placement=Placement()) as studio:
        snapshots = Snapshots(studio, libraries)
        handlers = Handlers(studio, snapshots)
        actions = LibraryActions(studio, snapshots)
        paint(handlers, ANNA)
        assert (count(actions, ANNA), count(actions, BERT)) == (1, 0)
        paint(handlers, BERT)
        assert (count(actions, ANNA), count(actions, BERT)) == (1, 1)
    assert len(backend.calls) == 2


def test_a_picture_of_any_visitor_is_found_by_its_id(tmp_path: Path) -> None:
    """Who was shown an id may ask for the picture, its round and its work, without the trash."""
    libraries = VisitorLibraries(tmp_path / "visitors")
    with Studio(library=tmp_path / "api", backend=FakeBackend()) as studio:
        shown = paint(Handlers(studio, Snapshots(studio, libraries)), ANNA)
        assert shown.state is not None
        entries = libraries.of("a" * 32).work(shown.state.work or "")
        assert libraries.file_of(entries[1].id) == entries[1].path
        assert libraries.family(entries[1].id, scope="round") == entries
        assert libraries.family(entries[1].id, scope="picture") == entries[1:]
        libraries.of("a" * 32).trash(entries[1].id)
        assert libraries.family(entries[0].id, scope="work") == entries[:1]
        named = libraries.family(entries[1].id, scope="work")
        assert [entry.id for entry in named] == [entry.id for entry in entries]
    assert libraries.file_of("f" * 32) is None
    assert libraries.family("f" * 32, scope="work") == ()


def test_the_library_of_a_visitor_who_stays_away_is_deleted(tmp_path: Path) -> None:
    """The next visit of anybody sweeps it; who comes back begins anew."""
    libraries = VisitorLibraries(tmp_path, away_s=0.0)
    folder = libraries.of("a" * 32).folder
    assert folder.is_dir()
    libraries.of("b" * 32)
    assert not folder.exists()
    assert libraries.of("a" * 32).folder == folder


@pytest.mark.parametrize("visitor", ["a" * 32, "b" * 32])
def test_at_home_there_is_one_library(tmp_path: Path, visitor: str) -> None:
    """Whoever looks, it is the studio's."""
    with Studio(library=tmp_path, backend=FakeBackend()) as studio:
        assert OneLibrary(studio).of(visitor) is studio.library
