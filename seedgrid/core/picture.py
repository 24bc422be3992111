"""Picture: pixels with their recipe, passport and lineage, and the digest of the pixels.

Knows nothing of files (png.py) or of the library.
"""

import hashlib
import secrets
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from seedgrid.core.recipe import Passport, Recipe, Value

Pixels = NDArray[np.uint8]
"""RGB, shape (height, width, 3), uint8."""

PictureId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class Lineage(Value):
    """Where a picture stands in the tree of choices; not part of what it is.

    Attributes:
        picture_id: This picture's own id, unguessable.
        parent_id: The picture that was refined; None for a first grid.
        work_id: The first round of this tree.
        round_id: The round (one click on Generate or Refine) that made it.
        cell: Its place in the round, from 0.
        change: What was changed against the parent, in words: `", artsy"`.
        created_at: UTC, ISO 8601.
    """

    picture_id: PictureId
    parent_id: PictureId | None = None
    work_id: PictureId
    round_id: PictureId
    cell: Annotated[int, Field(ge=0, le=9999)]
    change: Annotated[str, StringConstraints(max_length=5000)] = ""
    created_at: Annotated[str, StringConstraints(max_length=40)]


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
    """Return the SHA-256 of RGB pixels, row by row, 64 hexadecimal digits.

    Args:
        pixels: Shape (height, width, 3), uint8.
    """
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


Key = TypeVar("Key", bound=Hashable)


def without_circles(parents: Mapping[Key, Key | None]) -> dict[Key, Key | None]:
    """Cut each circle of parents at one place: files from elsewhere may say that there is one."""
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
