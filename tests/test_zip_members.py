"""A damaged member of a ZIP file takes no other with it."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import make_picture

from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.library.take_in import take_in


def bundle(how: int = zipfile.ZIP_STORED, *, num: int = 3, bad: str = "b1.png") -> bytearray:
    """Pack pictures `b0.png` …; the bad one is the only one that is packed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for number in range(num):
            name = f"b{number}.png"
            file.writestr(name, png.encode(make_picture(seed=number)), how if name == bad else 0)
    return bytearray(buffer.getvalue())


def spoil_data(data: bytearray) -> None:
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as file:
        start = file.getinfo("b1.png").header_offset + 30 + len("b1.png")
    data[start + 4 : start + 40] = b"\xff" * 36


def spoil_name(data: bytearray) -> None:
    """The table says that the name is UTF-8, and it is not."""
    for place in entries(data):
        if data[place + 46 : place + 52] == b"b1.png":
            struct.pack_into("<H", data, place + 8, 0x800)
    while (at := data.find(b"b1.png")) >= 0:
        data[at : at + 2] = b"\xff\xfe"


def spoil_version(data: bytearray) -> None:
    place = entries(data)[1]
    struct.pack_into("<H", data, place + 6, 999)


def spoil_packing(data: bytearray) -> None:
    place = entries(data)[1]
    struct.pack_into("<H", data, place + 10, 77)


def spoil_offset(data: bytearray) -> None:
    struct.pack_into("<L", data, entries(data)[1] + 42, 0xFFFFFFF0)


def entries(data: bytearray) -> list[int]:
    places, place = [], data.find(b"PK\1\2")
    while place >= 0:
        places.append(place)
        place = data.find(b"PK\1\2", place + 4)
    return places


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_whose_data_are_damaged_is_told(tmp_path: Path, how: int) -> None:
    """An LZMAError once ended the whole import."""
    check(tmp_path, how, spoil_data, num_kept=2)


@pytest.mark.parametrize("spoil", [spoil_version, spoil_packing, spoil_offset])
def test_a_member_whose_entry_is_damaged_is_told(
    tmp_path: Path, spoil: Callable[[bytearray], None]
) -> None:
    check(tmp_path, zipfile.ZIP_STORED, spoil, num_kept=2)


def test_a_name_that_is_no_text_is_shown_with_marks(tmp_path: Path) -> None:
    """The name does not matter: all three pictures are kept."""
    names = check(tmp_path, zipfile.ZIP_STORED, spoil_name, num_kept=3)
    assert names[1] == "art.zip: \ufffd\ufffd.png"


def check(
    folder: Path, how: int, spoil: Callable[[bytearray], None], *, num_kept: int
) -> list[str]:
    data = bundle(how)
    spoil(data)
    path = folder / "art.zip"
    path.write_bytes(bytes(data))
    with Library(folder / "art") as library:
        taken = list(take_in(library, [path]))
        kept = [one for one in taken if one.entry is not None]
        assert [one.error.code for one in taken if one.error] == ["bundle_damaged"] * (3 - num_kept)
        assert len(kept) == num_kept
        assert len(library.search().entries) == num_kept
    return [one.name for one in taken]
