"""Store: what the engine needs of a library, nothing more. `library.Library` fulfils it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from seedgrid.core.picture import Entry, Lineage, Picture
from seedgrid.core.recipe import Recipe


class Store(Protocol):
    """Where pictures become safe. Called from several threads."""

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Make sure that pictures of these recipes will find room."""

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Save a few pictures, all or none; when this returns, they survive a power cut."""

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Save the same pixels at other places of the lineage, all or none."""

    def remembered(self, recipe_ids: Sequence[str], passport_digest: str) -> Mapping[str, Entry]:
        """Return pictures of these recipes that were computed under this passport, by recipe id."""
