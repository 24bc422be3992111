"""What a library promised: a journal of what was tried and what was announced, and its check.

The journal is written with one system call a line, so it survives the death of its writer.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seedgrid.core.errors import SeedGridError
from seedgrid.formats import png
from seedgrid.library import Library


class Journal:
    """Appends lines: `try` before something is done, `done` after it was announced."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, state: str, action: str, *ids: str) -> None:
        line = json.dumps({"state": state, "action": action, "ids": ids}) + "\n"
        os.write(self._descriptor, line.encode())


@dataclass
class Promise:
    """What must be true of one picture; None is "either, it was being changed"."""

    present: bool | None = True
    was_trashed: bool = False
    favourite: bool | None = False
    trashed: bool | None = False


@dataclass
class Promises:
    """What a library must hold after everything in its journal."""

    pictures: dict[str, Promise] = field(default_factory=dict)

    def follow(self, path: Path) -> None:
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            self._apply(entry["action"], entry["ids"], done=entry["state"] == "done")

    def forgive_emptied(self) -> None:
        """Several writers empty one trash: what was ever in it may be gone, in any order."""
        for promise in self.pictures.values():
            if promise.was_trashed:
                promise.present = None
                promise.trashed = None

    def _apply(self, action: str, ids: list[str], *, done: bool) -> None:
        if action == "add" and done:
            self.pictures |= {picture_id: Promise() for picture_id in ids}
        elif action == "favourite":
            for picture_id in ids:
                self.pictures[picture_id].favourite = True if done else None
        elif action in {"trash", "restore"}:
            for picture_id in ids:
                self.pictures[picture_id].trashed = action == "trash" if done else None
                self.pictures[picture_id].was_trashed = True
        elif action == "empty":
            for promise in self.pictures.values():
                if promise.trashed is not False and promise.present is not False:
                    promise.present = False if done and promise.trashed else None

    def broken_by(self, folder: Path) -> list[str]:
        """Open the library as after a crash and say which promises it breaks."""
        try:
            with Library(folder) as library:
                return [*self._broken_pictures(library), *_broken_library(library)]
        except SeedGridError as error:
            return [f"it does not open: {error}"]

    def _broken_pictures(self, library: Library) -> list[str]:
        broken = []
        pages = [library.search(trashed=trashed, limit=10_000) for trashed in (False, True)]
        there = {entry.id: entry for page in pages for entry in page.entries}
        for picture_id, promise in self.pictures.items():
            entry = there.get(picture_id)
            if promise.present is not None and (entry is not None) != promise.present:
                broken.append(f"{picture_id}: there {entry is not None}, not {promise.present}")
            promise.present = entry is not None
            if entry is None:
                continue
            png.read_checked(entry.path)
            for name in ("favourite", "trashed"):
                expected, found = getattr(promise, name), getattr(entry, name)
                if expected not in (None, found):
                    broken.append(f"{picture_id}: {name} is {found}")
                setattr(promise, name, found)
        return broken


def _broken_library(library: Library) -> list[str]:
    broken = []
    report = library.check()
    if not report.is_clean:
        broken.append(f"the check finds {_found(report)}")
    with library._storage.database.reads() as connection:
        lost = connection.exec_driver_sql("SELECT count(*) FROM pictures WHERE lost").scalar()
        rows = connection.exec_driver_sql("SELECT count(*) FROM pictures").scalar()
    files = len(list((library.folder / "objects").glob("*/*")))
    if lost or rows != files:
        broken.append(f"{rows} rows, {files} files, {lost} lost")
    left = [path.name for path in (library.folder / "tmp").glob("*")]
    if left:
        broken.append(f"left in tmp: {left}")
    return broken


def _found(report: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in vars(report).items() if value)
