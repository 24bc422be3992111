"""The library: every picture made, its lineage, and how nothing is lost.

Whatever reads or writes raises `LibraryError` where the folder or the database refuses; what was
kept before is untouched, and nothing half-written is left behind.

from seedgrid.library import Library
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seedgrid.library.store import Library

__all__ = ["Library"]


def __getattr__(name: str) -> type[Library]:
    # The database's import is paid by those who open a library, not by all who import this room.
    if name == "Library":
        from seedgrid.library.store import Library

        return Library
    raise AttributeError(name)
