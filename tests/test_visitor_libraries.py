"""Whose pictures are whose: one library at home, one a visitor on a Space."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pictures import make_picture
from refusing import refused

from seedgrid.core.errors import LibraryError
from seedgrid.library.visitor_libraries import VisitorLibraries
from seedgrid.storage import starts


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def visitor(number: int) -> str:
    return f"{number:032x}"


def num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_library_of_a_visitor_who_stays_away_is_deleted(tmp_path: Path, clock: Clock) -> None:
    """The next visit of anybody sweeps it; who comes back begins anew."""
    libraries = VisitorLibraries(tmp_path, away_s=60.0, clock=clock)
    library = libraries.of("a" * 32)
    entry = library.add(make_picture())
    assert library.folder.is_dir()
    clock.now_s = 61.0
    libraries.of("b" * 32)
    assert not library.folder.exists()
    assert libraries.of("a" * 32).file_of(entry.id) is None
    again = library.add(make_picture(seed=9))
    assert libraries.of("a" * 32).get(again.id) == again
    assert libraries.of("a" * 32).file_of(again.id) == again.path


def test_what_pictures_begin_from_counts_and_goes_with_its_visitor(
    tmp_path: Path, clock: Clock
) -> None:
    """A photograph without a recipe once lay in a visitor's folder for ever, and bound nobody."""
    libraries = VisitorLibraries(tmp_path, away_s=60.0, max_bytes=100, clock=clock)
    library = libraries.of(visitor(0))
    pixels = make_picture().pixels
    start = library.keep_start(pixels)
    assert library.keep_start(pixels) == start
    assert starts.place_of(start) is not None
    with refused(LibraryError, "visitors_full"):
        libraries.of(visitor(1)).keep_start(pixels)
    clock.now_s = 61.0
    libraries.of(visitor(1))
    assert not library.folder.exists()
    assert starts.place_of(start) is None
    assert library.starts not in starts.places


def test_who_only_looks_opens_no_library(tmp_path: Path) -> None:
    """Forged ids once took a descriptor, a folder and half a megabyte each."""
    libraries = VisitorLibraries(tmp_path)
    assert libraries.of(visitor(0)).works().works == ()
    before = num_descriptors()
    for number in range(1, 500):
        assert libraries.of(visitor(number)).work("0" * 32) == ()
    assert num_descriptors() <= before + 1
    assert list(tmp_path.iterdir()) == []


def test_a_library_opens_with_its_first_picture_from_many_threads(tmp_path: Path) -> None:
    """A visitor's first clicks may come at once; all of their pictures are in one library."""
    libraries = VisitorLibraries(tmp_path)
    pictures = [make_picture(seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        entries = list(
            pool.map(lambda each: libraries.of(visitor(each.recipe.seed % 2)).add(each), pictures)
        )
    for number in range(2):
        kept = libraries.of(visitor(number)).search("").entries
        assert {entry.recipe.seed % 2 for entry in kept} == {number}
        assert len(kept) == 4
    for entry in entries:
        owner = libraries.of(visitor(entry.recipe.seed % 2))
        assert owner.file_of(entry.id) == entry.path


def fill(libraries: VisitorLibraries, *, count: int) -> None:
    for number in range(count):
        libraries.of(visitor(number)).add(make_picture(seed=number))


@pytest.mark.parametrize("bounds", [{"max_visitors": 3}, {"max_bytes": 6_000}])
def test_libraries_are_bounded_together(
    tmp_path: Path, clock: Clock, bounds: dict[str, int]
) -> None:
    """A new one waits for the one that was left alone longest, and for nobody who is there."""
    libraries = VisitorLibraries(tmp_path, clock=clock, **bounds)
    with refused(LibraryError, "visitors_full"):
        fill(libraries, count=20)
    num_kept = len([folder for folder in tmp_path.iterdir() if len(folder.name) == 32])
    assert 1 <= num_kept <= 3
    with pytest.raises(LibraryError):
        libraries.of(visitor(50)).check_room([])
    clock.now_s = 3600.0
    libraries.of(visitor(1)).works()
    kept = libraries.of(visitor(50)).add(make_picture())
    assert libraries.of(visitor(50)).file_of(kept.id) == kept.path
    assert not (tmp_path / visitor(0)).exists()
    assert (num_kept == 1) or (tmp_path / visitor(1)).exists()


def test_who_is_there_already_fills_no_disk(tmp_path: Path, clock: Clock) -> None:
    """Only newcomers were refused where all was full: who had one picture could have any number."""
    libraries = VisitorLibraries(tmp_path, max_bytes=30_000, clock=clock)
    library = libraries.of(visitor(0))
    first = library.add(make_picture())
    library.check_room([first.recipe])
    library.add_together([make_picture(seed=seed) for seed in range(5)])  # Painted: it is kept.
    with refused(LibraryError, "visitor_share"):
        library.check_room([first.recipe])
    data = first.path.read_bytes()
    with pytest.raises(LibraryError):
        library.add_png(data)
    with pytest.raises(LibraryError):
        library.keep_start(make_picture().pixels)
    clock.now_s = 3600.0  # Nobody's own pictures go for what they do themselves.
    with pytest.raises(LibraryError):
        library.check_room([first.recipe])
    assert library.file_of(first.id) == first.path


def paint_until_refused(libraries: VisitorLibraries, ids: list[str], address: str) -> str:
    for number in range(200):
        library = libraries.of(ids[number % len(ids)], address)
        try:
            library.check_room([])
        except LibraryError as error:
            return error.code
        library.add(make_picture(seed=number))
    raise AssertionError("nobody was refused")


@pytest.mark.parametrize("num_ids", [1, 7])
def test_who_never_rests_leaves_room_for_others(tmp_path: Path, clock: Clock, num_ids: int) -> None:
    """One address could fill all the room, with one id or many: every other artist was refused."""
    libraries = VisitorLibraries(tmp_path, max_bytes=100_000, clock=clock)
    greedy = [visitor(number) for number in range(num_ids)]
    assert paint_until_refused(libraries, greedy, "10.0.0.1") == "visitor_share"
    for number in range(20, 23):
        library = libraries.of(visitor(number), f"10.0.0.{number}")
        library.check_room([])
        library.add(make_picture())
    libraries.of(greedy[0], "10.0.0.1").add(make_picture())  # What is painted is kept.
    with pytest.raises(LibraryError):
        libraries.of(visitor(99), "10.0.0.1").check_room([])


def test_many_ids_of_one_address_keep_nobody_out(tmp_path: Path, clock: Clock) -> None:
    """One with a thousand cookies once took every visitor's place."""
    libraries = VisitorLibraries(tmp_path, max_visitors=6, clock=clock)
    for number in range(6):
        libraries.of(visitor(number), "10.0.0.1").add(make_picture())
    with refused(LibraryError, "visitors_full"):
        libraries.of(visitor(6), "10.0.0.1").add(make_picture())
    for number in (7, 8):
        libraries.of(visitor(number), f"10.0.0.{number}").add(make_picture())
    assert not (tmp_path / visitor(0)).exists()


def test_who_has_too_much_has_nobodys_pictures_deleted(tmp_path: Path, clock: Clock) -> None:
    """What others left alone goes for those who have little, not for who fills the room."""
    libraries = VisitorLibraries(tmp_path, max_bytes=100_000, clock=clock)
    entry = libraries.of(visitor(1), "10.0.0.2").add(make_picture())
    clock.now_s = 3600.0
    assert paint_until_refused(libraries, [visitor(0)], "10.0.0.1") == "visitor_share"
    assert libraries.of(visitor(1)).file_of(entry.id) == entry.path
