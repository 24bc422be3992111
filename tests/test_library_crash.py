"""What was announced survives kill -9, I/O errors, a full disk and a read-only folder.

A sample of each; the whole of it is `python -m tools.crash` (docs/log.md has its results).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pictures import make_picture

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Failed
from seedgrid.core.plan import plan_grid
from seedgrid.core.request import Request, resolve
from seedgrid.engine import Engine
from seedgrid.library import Library
from seedgrid.testing.fake import FAKE_CARD, FakeBackend

ROOT = Path(__file__).parents[1]
NO_STRACE = "no strace; apt-get install strace"


def crash(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.crash", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def strace() -> None:
    """Let a test run only where strace can be used."""
    if shutil.which("strace") is None:
        pytest.skip(NO_STRACE)


@pytest.mark.skipif(os.name == "nt", reason="kill -9 and fork are not on Windows")
@pytest.mark.parametrize("count", ["6", pytest.param("24", marks=pytest.mark.sweep)])
def test_kill_9_at_random_moments_loses_nothing(count: str) -> None:
    """Killed while it generates, imports and deletes, the library keeps every promise."""
    finished = crash("kills", "--count", count, "--seed", "1")

    assert finished.stdout.endswith("0 broken promises\n"), finished.stdout + finished.stderr


@pytest.mark.skipif(os.name == "nt", reason="kill -9 and fork are not on Windows")
@pytest.mark.parametrize("count", ["5", pytest.param("16", marks=pytest.mark.sweep)])
def test_kill_9_of_two_writers_loses_nothing(count: str) -> None:
    """Two processes on one library, killed at once, leave it as one would."""
    finished = crash("kills", "--count", count, "--seed", "2", "--writers", "2")

    assert finished.stdout.endswith("0 broken promises\n"), finished.stdout + finished.stderr


@pytest.mark.usefixtures("strace")
def test_a_fault_at_any_system_call_loses_nothing() -> None:
    """A kill, an I/O error or a full disk, at calls spread over all that change a file."""
    finished = crash("sweep", "--every", "199")

    assert finished.stdout.endswith("0 broken promises\n"), finished.stdout + finished.stderr


@pytest.mark.usefixtures("strace")
def test_the_sweep_sees_what_a_careless_library_loses() -> None:
    """The control: rows before files and plain writes are found out."""
    finished = crash("sweep", "--careless", "--only", "write", "--start", "2", "--every", "6")

    assert finished.returncode == 1, finished.stdout + finished.stderr
    assert "0 broken" not in finished.stdout


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "seedgrid-test", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("no right to mount a small file system; run it as root")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_too_little_room_is_told_before_anything_is_painted(tmp_path: Path) -> None:
    """A run that would not fit is refused at once, and goes through when there is room."""
    disk = tmp_path / "disk"
    request = Request(prompt="hills", seeds=(1, 2, 3, 4), width=512, height=512)
    jobs = plan_grid(resolve(request, FAKE_CARD))
    with (
        mounted(disk, "size=3m"),
        Library(disk / "library") as library,
        Engine(FakeBackend(), library) as engine,
    ):
        with pytest.raises(LibraryError) as caught:
            engine.submit(jobs, owner="crash")
        assert caught.value.code == "disk_low"
        assert "3.5 MB are wanted" in str(caught.value)

        subprocess.run(["mount", "-o", "remount,size=6m", str(disk)], check=True)
        assert len(engine.submit(jobs, owner="crash").result(timeout_s=60)) == 4


def test_a_disk_that_gets_full_in_the_middle_keeps_what_was_announced(tmp_path: Path) -> None:
    """Room may be taken by others while it is painted: the run ends with one sentence."""
    disk = tmp_path / "disk"
    request = Request(prompt="hills", seeds=tuple(range(44)), width=64, height=64)
    jobs = plan_grid(resolve(request, FAKE_CARD))
    with mounted(disk, "size=2m"), Library(disk / "library") as library:
        with Engine(FakeBackend(), library) as engine:
            kept = engine.submit(jobs[:4], owner="crash").result(timeout_s=60)
            run = engine.submit(jobs[4:], owner="crash")
            (disk / "ballast").write_bytes(b"\0" * _room(disk))
            last = [*run.events(timeout_s=60)][-1]
            assert isinstance(last, Failed)
            assert last.error.code == "disk_full"
        announced = {entry.id for entry in (*kept, *run.finished.values())}
        (disk / "ballast").unlink()
        library.close()
        with Library(disk / "library") as again:
            assert {entry.id for entry in again.search(limit=100).entries} >= announced
            assert again.check().is_clean


def test_a_full_disk_is_told_and_costs_nothing(tmp_path: Path) -> None:
    """Pictures fit until they do not; then one sentence, and all goes on when there is room."""
    disk = tmp_path / "disk"
    with mounted(disk, "size=1m"), Library(disk / "library") as library:
        kept = [library.add(make_picture())]

        def fill_with_pictures() -> None:
            for seed in range(1000):
                # An extend would forget what was kept before the disk was full.
                kept.append(library.add(make_picture(seed=seed, width=128)))  # noqa: PERF401

        def fill_with_notes() -> None:
            for entry in kept * 100:
                library.set_note(entry.id, "x" * 5000)

        with pytest.raises(LibraryError) as caught:
            fill_with_pictures()
        (disk / "library" / "ballast").write_bytes(b"\0" * _room(disk))
        with pytest.raises(LibraryError) as marked:
            fill_with_notes()
        assert {caught.value.code, marked.value.code} == {"disk_full"}
        assert len(library.search(limit=1000).entries) == len(kept)
        (disk / "library" / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        kept.append(library.add(make_picture(seed=5000)))
        library.close()

        with Library(disk / "library") as again:
            assert {again.get(entry.id).recipe == entry.recipe for entry in kept} == {True}
            assert again.check().is_clean


def _room(disk: Path) -> int:
    state = os.statvfs(disk)
    return state.f_bavail * state.f_frsize


def test_a_read_only_folder_can_be_looked_at(tmp_path: Path) -> None:
    """On a read-only disk pictures are shown, changes are refused in one sentence."""
    disk = tmp_path / "disk"
    with mounted(disk, "size=4m"):
        with Library(disk / "library") as library:
            entry = library.add(make_picture())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        with Library(disk / "library") as library:
            assert library.get(entry.id) == entry
            assert library.check().is_clean
            for action in (
                lambda: library.add(make_picture(seed=8)),
                lambda: library.set_favourite(entry.id, True),
                lambda: library.trash(entry.id),
            ):
                with pytest.raises(LibraryError) as caught:
                    action()
                assert caught.value.code == "folder_read_only"
        with pytest.raises(LibraryError) as caught:
            Library(disk / "another")
        assert caught.value.code == "folder_read_only"

        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        with Library(disk / "library") as library:
            library.add(make_picture(seed=8))
            assert library.check().is_clean
