"""Pictures as they are, in one ZIP file: the PNGs with their recipes inside, and nothing else.

The file comes in pieces, as it is made: it lies nowhere, and no more than a piece is in memory.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Entry
from seedgrid.core.text import picture_filename, unique_names

DATE: Final = (2026, 1, 1, 0, 0, 0)
"""Of all members: a fixed one makes equal archives equal files."""
_PIECE_BYTES: Final = 1024**2


def packed_pictures(entries: Sequence[Entry]) -> Iterator[bytes]:
    """Pack the files of these pictures, named by their words; those that are gone are left out."""
    there = [entry for entry in entries if entry.path.is_file()]
    if not there:
        raise InputError("export_nothing", field="picture")
    names = unique_names(picture_filename(e.recipe.prompt, e.recipe.seed) for e in there)
    pieces = _Pieces()
    # PNGs are compressed already. But a stored member that comes in pieces has no length in its
    # header, and some readers stop there; deflated at level 0, which all read, it says its end.
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_DEFLATED, compresslevel=0) as archive:
        for name, entry in zip(names, there, strict=True):
            with suppress(FileNotFoundError):  # It was deleted since.
                yield from _member(archive, pieces, name, entry)
    yield pieces.taken()


def _member(archive: zipfile.ZipFile, pieces: _Pieces, name: str, entry: Entry) -> Iterator[bytes]:
    member = zipfile.ZipInfo(name, DATE)
    member.compress_type = zipfile.ZIP_DEFLATED
    with entry.path.open("rb") as file, archive.open(member, "w") as target:
        while piece := file.read(_PIECE_BYTES):
            target.write(piece)
            yield pieces.taken()


class _Pieces(io.RawIOBase):
    """A file that holds what was written since it was last taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(memoryview(data))  # type: ignore[arg-type] # what has a buffer
        self._pieces.append(piece)
        return len(piece)

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
