"""Place: where one browser is in the tree of choices. It lives in that browser, ids only.

Knows nothing of pictures. What comes back from a browser is checked like anything from outside.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from seedgrid.core.picture import PictureId, new_id
from seedgrid.core.recipe import Value


class Place(Value):
    """Which round is on the stage, which picture is picked, which run goes on.

    Attributes:
        visitor: Who this browser is to the queue; says nothing about the person.
        work: The tree.
        round: The round on the stage.
        picked: The picture in the card: picked on the stage, or the parent of the round there.
        run: The last run that was started here.
        epoch: When it was shown, in milliseconds; in the browser the newest one wins, so that the
            last words of a run cannot overwrite what came after it.
    """

    visitor: PictureId
    work: PictureId | None = None
    round: PictureId | None = None
    picked: PictureId | None = None
    run: PictureId | None = None
    epoch: Annotated[int, Field(ge=0)] = 0

    def move(self, **changes: str | None) -> Place:
        """Return a copy with other ids, to be shown now."""
        return self.model_copy(update={**changes, "epoch": time.time_ns() // 1_000_000})

    def to_browser(self) -> dict[str, Any]:
        """Return it as the browser keeps it."""
        return self.model_dump(mode="json")


NOWHERE: Final[dict[str, Any]] = {}
"""What a browser holds at its first visit."""


def read_place(kept: object) -> Place:
    """Read what a browser kept; a new visitor's place when it is nothing that we wrote."""
    try:
        return Place.model_validate(kept)
    except ValidationError:
        return Place(visitor=new_id())
