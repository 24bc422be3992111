"""Imports files, folders and ZIP bundles: SeedGrid's pictures into the library, others as requests.

A ZIP file is read member by member within limits, never extracted; a bad file is only reported.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seedgrid.core.errors import InputError, Notice, PictureError
from seedgrid.core.picture import Entry, pixels_sha256
from seedgrid.core.prompts import read_scale
from seedgrid.core.text import expanded
from seedgrid.formats import png
from seedgrid.formats.importers.imported import Imported, read_foreign
from seedgrid.formats.own_texts import WORK_KEY, WorkPicture, read_work
from seedgrid.formats.png_chunks import MAX_FILE_BYTES
from seedgrid.models.loras import find_lora
from seedgrid.storage import starts
from seedgrid.storage.unpacking import is_photo

if TYPE_CHECKING:
    from seedgrid.library import Library

MAX_MEMBERS: Final = 10_000
_MAX_LIST_BYTES: Final = 8 * 1024**2
MAX_UNPACKED_BYTES: Final = 4 * 1024**3
_MAX_RATIO: Final = 4  # contents to ZIP file, beyond 64 MB: pictures are compressed already
_UNREADABLE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
)  # Raised by `zipfile` for a damaged file or member; RuntimeError for a password

_START: Final = re.compile(r"(?:^|[/\\ ])starts[/\\]([0-9a-f]{64})\.png\Z")
_MAX_NAMES: Final = 200
_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".webp")  # SeedGrid writes only the first


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The result of one file: one of `entry`, `imported`, `start`, `work`, `error` is set."""

    name: str  # the file's path, or its name inside a bundle
    entry: Entry | None = None  # a picture of SeedGrid, in the library
    is_new: bool = False  # whether it was not in the library before
    imported: Imported | None = None  # another tool's picture, as a request; it is not stored
    start: str | None = None  # a file of a folder `starts`, by its pixels' SHA-256
    work: tuple[WorkPicture, ...] = ()  # of a sheet: its pictures' recipes and lineages
    error: InputError | None = None  # why it could not be imported


def take_in(library: Library, paths: Iterable[Path]) -> Iterator[Taken]:
    """Import every picture of these files, folders and bundles, one after the other."""
    for path in paths:
        try:
            source = expanded(path)
            if source.suffix.lower() == ".zip" and not source.is_dir():
                yield from _take_bundle(library, source)
                continue
            if not source.is_dir():
                yield _take_one(library, _printable(source), source)
                continue
            for file in _pictures_in(source):
                taken = _take_one(library, _printable(file), file)
                is_without = taken.error and taken.error.code == "picture_without_recipe"
                if not (is_without and png.is_sheet(file)):
                    yield taken
        except InputError as error:
            yield Taken(name=_printable(path), error=error)


def _pictures_in(folder: Path) -> Iterator[Path]:
    """Yield the pictures of a folder and its subfolders by name; linked folders are left out."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        yield from (Path(root) / name for name in sorted(files) if _is_picture(name))


def _is_picture(path: str) -> bool:
    """Tell a picture by its name; macOS writes a `._NAME` without one beside each file."""
    return path.lower().endswith(_SUFFIXES) and not Path(path).name.startswith("._")


def _take_one(library: Library, name: str, source: png.Source) -> Taken:
    try:
        data = png.read_bytes(source)
        if is_photo(data):
            return Taken(name=name, imported=_with_loras(read_foreign(data)))
        try:
            entry, is_new = add_picture(library, data)
            return Taken(name=name, entry=entry, is_new=is_new)
        except PictureError as error:
            if error.code != "picture_without_recipe":
                raise
            if (start := _START.search(name)) is not None:
                pixels = starts.read_picture(data)
                if pixels_sha256(pixels) != start[1]:
                    raise PictureError("start_missing", value=start[1][:12]) from None
                return Taken(name=name, start=library.keep_start(pixels))
            if WORK_KEY in (texts := png.read_texts(data)):
                if (text := texts[WORK_KEY]) is None:
                    raise PictureError("picture_text", value=WORK_KEY) from None
                return Taken(name=name, work=read_work(text))
            return Taken(name=name, imported=_with_loras(read_foreign(data)))
    except InputError as error:
        return Taken(name=name, error=error)


def _printable(path: Path) -> str:
    """Return a path as text; bytes that are not valid text are replaced."""
    return os.fsencode(path).decode(errors="replace")


def add_picture(library: Library, data: bytes) -> tuple[Entry, bool]:
    """Add a PNG file, or bring its picture back from the trash; tell whether it is new."""
    record, _ = png.read_checked(data)
    try:
        existing = library.get(record.lineage.picture_id)
    except InputError:
        return library.add_png(data), True
    sha256 = hashlib.sha256(data).hexdigest()
    same = (existing.recipe.id, existing.pixels_sha256) == (record.recipe.id, record.pixels_sha256)
    if sha256 == existing.file_sha256:
        if existing.lost or existing.read_file() != data:
            existing = library.add_png(data)
    elif existing.lost or not same:  # Another picture of the same id: its bytes give a new one.
        lineage = record.lineage.model_copy(update={"picture_id": sha256[:32]})
        return library.add_png(png.rewrite(data, lineage=lineage)), True
    return back_from_trash(library, existing), False


def back_from_trash(library: Library, entry: Entry) -> Entry:
    """Return a picture that is not in the trash."""
    return library.restore(entry.id)[0] if entry.trashed else entry


def _with_loras(imported: Imported) -> Imported:
    """Add the installed LoRAs whose names are in another tool's prompt."""
    installed = []
    for name, scale in imported.lora_tags:
        with suppress(InputError):
            installed.append(find_lora(name).model_copy(update={"scale": read_scale(scale)}))
    if not installed:
        return imported
    names = {lora.id for lora in installed}
    missing = [name for name in dict.fromkeys(imported.loras) if name not in names]
    reasons = [reason for reason in imported.reasons if reason.code != "import_loras"]
    if missing:
        reasons.insert(0, Notice("import_loras", value=", ".join(missing)[:_MAX_NAMES]))
    request = replace(imported.request, loras=tuple(installed))
    return replace(imported, request=request, reasons=tuple(reasons))


class _BundleFile(io.FileIO):
    """A ZIP file whose list of members, which `zipfile` reads at once, is of limited size."""

    is_listed = False

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.is_listed and (size or 0) > _MAX_LIST_BYTES:
            raise InputError("bundle_large", field="picture", value=Path(str(self.name)).name)
        return super().read(size) or b""


def _take_bundle(library: Library, path: Path) -> Iterator[Taken]:
    try:
        with _BundleFile(path) as file, zipfile.ZipFile(file) as bundle:
            file.is_listed = True
            # `is_dir` fails for an empty name.
            members = [each for each in bundle.infolist() if each.filename and not each.is_dir()]
            if len(members) > MAX_MEMBERS:
                raise InputError("bundle_large", field="picture", value=path.name)
            yield from _take_members(library, path, bundle, members)
    except _UNREADABLE as error:
        raise PictureError("bundle_damaged", value=path.name, reason=str(error)) from error


def _take_members(
    library: Library, path: Path, bundle: zipfile.ZipFile, members: list[zipfile.ZipInfo]
) -> Iterator[Taken]:
    room = min(MAX_UNPACKED_BYTES, MAX_FILE_BYTES + _MAX_RATIO * path.stat().st_size)
    is_ours = "recipes.json" in bundle.namelist()
    for member in members:
        if not _is_picture(member.filename):
            continue
        if is_ours and member.filename.startswith("model/"):  # pictures of the model's card
            continue
        name = f"{path.name}: {member.filename[:200]}"
        try:
            # `zipfile` never extracts more than the size in a member's header.
            if member.file_size > MAX_FILE_BYTES:
                size = f"{member.file_size // 2**20} MB"
                raise PictureError("picture_large", value=size, limit="64 MB")
            room -= member.file_size
            if room >= 0:
                yield _take_one(library, name, _unpacked(bundle, member, path))
        except InputError as error:
            yield Taken(name=name, error=error)
        if room < 0:
            raise InputError("bundle_large", field="picture", value=path.name)


def _unpacked(bundle: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> bytes:
    try:
        return bundle.read(member)
    except _UNREADABLE as error:
        raise PictureError("bundle_damaged", value=path.name, reason=str(error)) from error
