"""Entry: a picture in the library, as everybody else sees it. Frozen; no database behind it."""

from dataclasses import dataclass
from pathlib import Path

from seedgrid.core.picture import Lineage
from seedgrid.core.recipe import Passport, Recipe


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A picture that is safe on disk, with what a screen may want to mark.

    Attributes:
        path: The PNG file, absolute.
        pixels_sha256: Over the decoded RGB bytes, row by row.
        file_sha256: Over the PNG file.
        favourite: The artist marked it.
        note: What the artist wrote to it.
        trashed: It is in the trash: its file is there until the trash is emptied.
        tags: The artist's own words on it; see `core.tags`.
        lost: The file is gone or damaged; recipe and lineage are kept, it can be painted again,
            refined, and put into the trash.
        checked: This library painted it, or verified it here bit for bit; what came from
            elsewhere is what somebody says, and is never given back as a memory.
    """

    path: Path
    recipe: Recipe
    passport: Passport
    lineage: Lineage
    pixels_sha256: str
    file_sha256: str
    favourite: bool = False
    note: str = ""
    trashed: bool = False
    tags: tuple[str, ...] = ()
    lost: bool = False
    checked: bool = False

    @property
    def id(self) -> str:
        """The picture's own id, 32 hexadecimal digits."""
        return self.lineage.picture_id
