"""Pictures: a `Picture` is in memory; an `Entry` describes a PNG file, with the artist's marks."""

from __future__ import annotations

import hashlib
import io
import secrets
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from seedgrid.core.errors import InputError, LibraryError, PictureError
from seedgrid.core.recipe import MAX_PROMPT_CHARACTERS, Passport, Recipe, Value
from seedgrid.core.text import expanded, one_line

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]  # RGB, shape (height, width, 3), uint8

PictureId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class Lineage(Value):
    """A picture's position in the tree of choices; it does not affect the pixels."""

    picture_id: PictureId  # This picture's own id, unguessable
    parent_id: PictureId | None = None  # The picture that was refined; None for a first grid
    work_id: PictureId  # The tree: a first grid and all its refinements
    round_id: PictureId  # The round (one click on Generate or Refine) that made it
    cell: Annotated[int, Field(ge=0, le=9999)]  # Its index in the round, from 0
    # What was changed against the parent, in words: `", artsy"`
    change: Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARACTERS)] = ""
    created_at: Annotated[str, StringConstraints(max_length=40)]  # UTC, ISO 8601


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished picture, not yet on disk."""

    pixels: Pixels = field(repr=False, compare=False)
    recipe: Recipe
    passport: Passport
    lineage: Lineage

    @cached_property
    def pixels_sha256(self) -> str:
        """SHA-256 of the RGB bytes, row by row."""
        return pixels_sha256(self.pixels)


def pixels_sha256(pixels: Pixels) -> str:
    """Return the SHA-256 of pixels (height, width, 3), uint8, row by row: 64 hex digits."""
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


Key = TypeVar("Key", bound=Hashable)


def without_circles(parents: Mapping[Key, Key | None]) -> dict[Key, Key | None]:
    """Remove one parent link of each cycle; imported files may claim cycles."""
    found: dict[Key, Key | None] = {}
    for start in parents:
        path: dict[Key, None] = {}
        step: Key | None = start
        while step is not None and step not in found and step not in path:
            path[step] = None
            step = parents[step]
        found |= {each: parents[each] for each in path}
        if step is not None and step in path:
            found[step] = None
    return {each: found[each] for each in parents}


def new_id() -> str:
    """Return 32 hexadecimal digits that nobody can guess."""
    return secrets.token_hex(16)


def now() -> str:
    """Return the time in UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


Origin = Literal["painted here", "verified here", "taken in", "not checked"]
"""Where pixels come from: "taken in" from a file; "not checked" after rebuilding the library."""

OURS: Final[tuple[Origin, ...]] = ("painted here", "verified here")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A picture in a PNG file, with its marks; a live run's picture has no file."""

    path: Path  # The PNG file, absolute; `Path()` if there is none
    recipe: Recipe
    passport: Passport
    lineage: Lineage
    pixels_sha256: str  # Over the decoded RGB bytes, row by row
    file_sha256: str  # Over the PNG file; empty if there is none
    favourite: bool = False  # Whether the artist marked it as a favourite
    note: str = ""  # The artist's note on it
    trashed: bool = False  # Whether it is in the trash; emptying the trash deletes the file
    tags: tuple[str, ...] = ()  # The artist's own words on it; see `check_tag`
    # Whether its file is missing; the picture can still be painted again, refined and trashed
    lost: bool = False
    origin: Origin = "not checked"  # Where its pixels come from

    @property
    def id(self) -> str:
        """The picture's own id, 32 hexadecimal digits."""
        return self.lineage.picture_id

    @property
    def checked(self) -> bool:
        """Whether it was painted, or verified bit for bit, here; only such pictures are reused."""
        return self.origin in OURS

    @property
    def seed(self) -> int:
        """The recipe's seed."""
        return self.recipe.seed

    @property
    def prompt(self) -> str:
        """The recipe's prompt."""
        return self.recipe.prompt

    @property
    def image(self) -> Image:
        """The pixels, as a new Pillow image.

        Raises:
            LibraryError: `picture_lost`: its file is gone.
            PictureError: `picture_altered`: its size is not the recipe's, so it is not decoded.
        """
        from PIL import Image

        with Image.open(io.BytesIO(self.read_file()), formats=("PNG",)) as image:
            if image.size != (self.recipe.width, self.recipe.height):
                raise PictureError("picture_altered")
            return image.convert("RGB")

    def save(self, path: str | Path) -> Path:
        """Write a copy of the PNG file, with its recipe inside, whole or not at all.

        Raises:
            LibraryError: `picture_lost`: its file is gone.
            OSError: The copy cannot be written.
        """
        copy = expanded(path).absolute()
        unfinished = copy.with_name(f"{copy.name}.part")
        try:
            unfinished.write_bytes(self.read_file())
            return unfinished.replace(copy)
        finally:
            unfinished.unlink(missing_ok=True)

    def read_file(self) -> bytes:
        """Return the PNG file; raise `picture_lost`."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise LibraryError("picture_lost", value=self.id) from error

    _repr_png_ = read_file  # Jupyter calls it to show the picture.


MAX_TAGS: Final = 20
MAX_TAG_CHARACTERS: Final = 40


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A tag, and how many pictures outside the trash have it."""

    tag: str
    num_pictures: int


def check_tag(text: str) -> str:
    """Return a tag in its normal form: NFC, single spaces, no `#` in front."""
    # Only so many characters are normalised; a longer text is refused below.
    plain = " ".join(unicodedata.normalize("NFC", text[: 8 * MAX_TAG_CHARACTERS]).split())
    tag = plain.removeprefix("#").strip()
    if not tag:
        raise InputError("tag_empty", field="tag")
    if len(tag) > MAX_TAG_CHARACTERS or len(text) > 8 * MAX_TAG_CHARACTERS:
        raise InputError("tag_long", field="tag", value=tag, limit=MAX_TAG_CHARACTERS)
    if one_line(tag) != tag:
        raise InputError("tag_characters", field="tag", value=tag)
    return tag


def changed_tags(
    before: Sequence[str], *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return a picture's tags after a change; a tag in other capitals is the same tag."""
    gone = {check_tag(tag).casefold() for tag in remove}
    kept = {tag.casefold(): tag for tag in before if tag.casefold() not in gone}
    for tag in map(check_tag, add):
        kept.setdefault(tag.casefold(), tag)
    if len(kept) > MAX_TAGS:
        raise InputError("tags_many", field="tag", value=len(kept), limit=MAX_TAGS)
    return tuple(kept.values())
