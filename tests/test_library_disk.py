"""A full disk and a read-only disk: what was kept stays, and can be looked at."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pictures import make_picture
from refusing import refused

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Failed
from seedgrid.core.plan import plan_grid
from seedgrid.core.request import Request, resolve
from seedgrid.engine import Engine
from seedgrid.library import Library
from seedgrid.testing.fake import FAKE_CARD, FakeBackend


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "seedgrid-test", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small file system (root)")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)


def fill(disk: Path) -> Path:
    state = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(b"\0" * (state.f_bavail * state.f_frsize))
    return ballast


def test_too_little_room_is_told_before_anything_is_painted(tmp_path: Path) -> None:
    """A run that would not fit is refused at once, and goes through when there is room."""
    disk = tmp_path / "disk"
    jobs = plan_grid(
        resolve(Request(prompt="hills", seeds=(1, 2, 3, 4), width=512, height=512), FAKE_CARD)
    )
    with mounted(disk, "size=3m"), Engine(FakeBackend(), Library(disk / "library")) as engine:
        with refused(LibraryError, "disk_low", match=r"3\.5 MB are wanted"):
            engine.submit(jobs, owner="crash")

        remount(disk, "size=6m")
        assert len(engine.submit(jobs, owner="crash").result(timeout_s=60)) == 4


def test_a_disk_that_gets_full_in_the_middle_keeps_what_was_announced(tmp_path: Path) -> None:
    """Room may be taken by others while it is painted: the run ends with one sentence."""
    disk = tmp_path / "disk"
    request = Request(prompt="hills", seeds=tuple(range(44)), width=64, height=64)
    jobs = plan_grid(resolve(request, FAKE_CARD))
    with mounted(disk, "size=2m"):
        library = Library(disk / "library")
        with Engine(FakeBackend(), library) as engine:
            kept = engine.submit(jobs[:4], owner="crash").result(timeout_s=60)
            run = engine.submit(jobs[4:], owner="crash")
            ballast = fill(disk)
            last = [*run.events(timeout_s=60)][-1]
            assert isinstance(last, Failed)
            assert last.error.code == "disk_full"
        announced = {entry.id for entry in (*kept, *run.finished.values())}
        ballast.unlink()
        library.check(repair=True)
        assert {entry.id for entry in library.search(limit=100).entries} >= announced
        assert library.check().is_clean


def test_a_full_disk_can_be_looked_at_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """Pictures and notes are refused in one sentence, what was kept is there, also newly opened."""
    disk = tmp_path / "disk"
    with mounted(disk, "size=1m"):
        library = Library(disk / "library")
        kept = [library.add(make_picture(seed=seed, width=128)) for seed in range(4)]
        ballast = fill(disk)
        for action in (
            lambda: library.add(make_picture(seed=9, width=128)),
            lambda: [library.set_note(entry.id, "x" * 5000) for entry in kept],
        ):
            with refused(LibraryError, "disk_full"):
                action()
        for each in (library, Library(disk / "library")):
            assert [entry.id for entry in each.search().entries] == [e.id for e in kept[::-1]]
        ballast.unlink()
        library.add(make_picture(seed=9, width=128))
        assert len(library.search().entries) == 5
        assert library.check().is_clean


def test_a_read_only_folder_can_be_looked_at(tmp_path: Path) -> None:
    """On a read-only disk pictures are shown, changes are refused in one sentence."""
    disk = tmp_path / "disk"
    with mounted(disk, "size=4m"):
        entry = Library(disk / "library").add(make_picture())
        remount(disk, "ro")

        library = Library(disk / "library")
        assert library.get(entry.id) == entry
        assert library.check().is_clean
        for action in (
            lambda: library.add(make_picture(seed=8)),
            lambda: library.set_favourite(entry.id, True),
            lambda: library.trash(entry.id),
            lambda: Library(disk / "another").check_room(()),
        ):
            with refused(LibraryError, "folder_read_only"):
                action()

        remount(disk, "rw")
        library.add(make_picture(seed=8))
        assert library.check().is_clean
