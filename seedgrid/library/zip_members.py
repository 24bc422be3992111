"""The members of a ZIP file, each opened alone, so that a damaged one takes no other with it.

`zipfile` reads the whole table of contents or nothing. Where it refuses, each entry of the table is
shown to it as if it were the only one.
"""

from __future__ import annotations

import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Final

_END: Final = struct.Struct("<4s4H2LH")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_FLAGS_AT: Final = 8
_FLAG_UTF8: Final = 0x800
_LONGEST_COMMENT: Final = 65_535
_MAX_TABLE: Final = 8 * 1024**2
_IN_LARGE_END: Final = 0xFFFFFFFF
_LARGE_LENGTH_AT: Final = 40
"""Where the table's length stands in the end record of Zip64, which some tools always write."""
_PIECE_BYTES: Final = 1024**2
_UNREADABLE: Final = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    MemoryError,
)
"""What `zipfile` raises for a member: a password is a RuntimeError, a wild offset a ValueError."""


class MemberError(Exception):
    """One member cannot be read.

    Attributes:
        name: Of the member, as far as it can be told.
    """

    def __init__(self, name: str, reason: Exception) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.name = name


class Members:
    """What is in a ZIP file, folders left out.

    Attributes:
        num_unpacked: How many bytes were unpacked so far, of members that came to nothing too.

    Raises:
        zipfile.BadZipFile: It has no table of contents.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.num_unpacked = 0
        try:
            self._entries = list(_entries(self._file))
        except BaseException:  # Nobody else can close it.
            self._file.close()
            raise

    def __len__(self) -> int:
        return len(self._entries)

    def __enter__(self) -> Members:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def names(self) -> Iterator[tuple[int, str]]:
        """Go through the members: number and name, with what is no text replaced."""
        for number, (name, _, _) in enumerate(self._entries):
            if not name.endswith("/"):
                yield number, name

    def read(self, number: int, limit: int) -> bytes:
        """Return a member's bytes, at most `limit`, whatever size it claims.

        Raises:
            MemberError: It is damaged, locked with a password, or packed in an unknown way.
        """
        name, start, table = self._entries[number]
        try:
            with (
                zipfile.ZipFile(_Alone(self._file, start, table)) as bundle,
                bundle.open(bundle.infolist()[0]) as member,
            ):
                return self._read(member, limit)
        except _UNREADABLE as error:
            raise MemberError(name, error) from error

    def _read(self, member: IO[bytes], limit: int) -> bytes:
        pieces: list[bytes] = []
        while limit > 0 and (piece := member.read(min(limit, _PIECE_BYTES))):
            self.num_unpacked += len(piece)
            limit -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)


def _entries(file: BinaryIO) -> Iterator[tuple[str, int, bytes]]:
    """Go through the table: name, where the table starts, and a table of that member alone."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END.size - _LONGEST_COMMENT))
    tail = file.read()
    found = tail.rfind(b"PK\5\6")
    if found < 0 or len(tail) - found < _END.size:
        raise zipfile.BadZipFile("no table of contents")
    end = size - len(tail) + found
    length = _END.unpack_from(tail, found)[5]
    large = tail.rfind(b"PK\6\6", 0, found)
    if length == _IN_LARGE_END and large >= 0 and len(tail) - large >= _LARGE_LENGTH_AT + 8:
        end = size - len(tail) + large
        (length,) = struct.unpack_from("<Q", tail, large + _LARGE_LENGTH_AT)
    start = end - length
    if start < 0 or length > _MAX_TABLE:
        raise zipfile.BadZipFile("the table of contents lies outside the file")
    file.seek(start)
    table, place = file.read(length), 0
    while table[place : place + 4] == b"PK\1\2" and place + _ENTRY.size <= length:
        fields = _ENTRY.unpack_from(table, place)
        name_end = place + _ENTRY.size + fields[10]
        entry_end = name_end + fields[11] + fields[12]
        entry = bytearray(table[place:entry_end])
        name = bytes(table[place + _ENTRY.size : name_end])
        if fields[3] & _FLAG_UTF8 and not _is_text(name):
            struct.pack_into("<H", entry, _FLAGS_AT, fields[3] & ~_FLAG_UTF8)
        only = _END.pack(b"PK\5\6", 0, 0, 1, 1, len(entry), start, 0)
        yield name.decode(errors="replace"), start, bytes(entry) + only
        place = entry_end


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Alone(io.RawIOBase):
    """A file up to its table of contents, then another table."""

    def __init__(self, file: BinaryIO, start: int, table: bytes) -> None:
        self._file = file
        self._start = start
        self._table = table
        self._place = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}
        self._place = offset + base.get(whence, self._start + len(self._table))
        if self._place < 0:
            raise OSError("a place before the file")
        return self._place

    def read(self, size: int = -1) -> bytes:
        end = self._start + len(self._table)
        size = max(0, end - self._place) if size < 0 else size
        data = b""
        if self._place < self._start:
            self._file.seek(self._place)
            data = self._file.read(min(size, self._start - self._place))
        if len(data) == size or self._place + len(data) < self._start:
            self._place += len(data)
            return data
        at = self._place + len(data) - self._start
        data += self._table[at : at + size - len(data)]
        self._place += len(data)
        return data
