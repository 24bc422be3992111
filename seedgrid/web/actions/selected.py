"""Actions on several pictures of the library at once: mark, tag, trash, restore.

An item of the library is a picture, which may stand for all pictures equal to it, or a whole work,
which stands for all equal works. An action applies to all that an item stands for.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Body
from pydantic import Field, StringConstraints

from seedgrid.core.picture import MAX_TAGS, PictureId
from seedgrid.core.recipe import Value
from seedgrid.web.actions.library import tags_of
from seedgrid.web.serializers.answers import PageUpdate, says_what_hinders
from seedgrid.web.server.who import Kept
from seedgrid.web.state.snapshot import Snapshots

if TYPE_CHECKING:
    from seedgrid.core.picture import Entry
    from seedgrid.library import Library

MAX_WORKS: Final = 200
MAX_PICTURES: Final = 2000
"""In one request; the page splits larger restores."""

WorkIds = Annotated[tuple[PictureId, ...], Field(strict=False, max_length=MAX_WORKS)]
PictureIds = Annotated[tuple[PictureId, ...], Field(strict=False, max_length=MAX_PICTURES)]


Tags = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=400)], ...],
    Field(strict=False, max_length=MAX_TAGS),
]


class Chosen(Value):
    """Pictures, and whole works, by their ids.

    Attributes:
        equals: Pictures that stand for all with their recipe and pixels.
    """

    works: WorkIds = ()
    pictures: PictureIds = ()
    equals: WorkIds = ()


class Throw(Chosen):
    """What to trash or restore.

    Attributes:
        number: Counts the deletions of a page; the answer repeats it.
    """

    trashed: bool
    number: Annotated[int, Field(ge=0)] = 0


class Mark(Chosen):
    """Marks to change; None and empty leave them.

    Attributes:
        add: Tags to put on them.
        remove: Tags to take off.
    """

    favourite: bool | None = None
    add: Tags = ()
    remove: Tags = ()


class Selected:
    """Handlers of the library's selection. Safe to use from any thread."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    @says_what_hinders
    def on_trash(self, asked: Annotated[Throw, Body(embed=True)], kept: Kept) -> PageUpdate:
        """Put pictures and works into the trash, or take them out.

        Returns:
            The ids of the pictures that were not in the trash before, so that undo restores only
            those.
        """
        library = self._snapshots.look(kept).library
        ids = [e.id for e in _named(library, asked) if e.trashed != asked.trashed]
        (library.trash if asked.trashed else library.restore)(*ids)
        return PageUpdate(library={"thrown": ids if asked.trashed else [], "number": asked.number})

    @says_what_hinders
    def on_mark(self, asked: Annotated[Mark, Body(embed=True)], kept: Kept) -> PageUpdate:
        """Mark pictures and all pictures of works."""
        library = self._snapshots.look(kept).library
        ids = [entry.id for entry in _named(library, asked)]
        if asked.favourite is not None:
            library.set_favourites(ids, asked.favourite)
        if asked.add or asked.remove:
            library.tag(ids, add=asked.add, remove=asked.remove)
        return PageUpdate(library={"tags": tags_of(library)})


def _named(library: "Library", chosen: Chosen) -> "Sequence[Entry]":
    """Return the chosen pictures and all that the items stand for, each once."""
    works = {alike: None for work in chosen.works for alike in library.alike(work)}
    found = {entry.id: entry for work in works for entry in library.work(work)}
    found |= {entry.id: entry for one in chosen.equals for entry in library.equals(one)}
    for picture_id in chosen.pictures:
        if picture_id not in found:
            found[picture_id] = library.get(picture_id)
    return tuple(found.values())
