"""What a library is asked for, and how its answers come: page by page. No database, no files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from seedgrid.core.picture import Entry

Sort = Literal["newest", "oldest", "favourites", "words"]
"""In which order many pictures or works come; favourites and words begin with the newest, too."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some pictures of an answer, newest first.

    Attributes:
        after: Where the next page goes on; None at the end.
        times: Of pictures that stand for several equal ones, how many, by id.
    """

    entries: tuple[Entry, ...]
    after: int | None = None
    times: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Work:
    """A tree of choices in one line.

    Attributes:
        id: The `work_id` of its pictures.
        cover: Its newest picture.
        num_pictures: How many there are, the trash left out.
        times: How many works there are with just its recipes and pixels; it is the newest of them.
    """

    id: str
    cover: Entry
    num_pictures: int
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class WorkPage:
    """Some works, the one with the newest picture first.

    Attributes:
        after: Where the next page goes on; None at the end.
    """

    works: tuple[Work, ...]
    after: int | None = None


class Search(TypedDict, total=False):
    """What else is looked for; what is absent, or None, does not matter.

    Attributes:
        model: The model's id.
        seed: The seed.
        favourite: Only favourites, or only the others.
        since: The earliest time, ISO 8601, or the beginning of one: `"2026-11"`.
        until: The time before which, ISO 8601, or the beginning of one.
        trashed: Look in the trash instead.
        tag: Only pictures with this tag.
    """

    model: str | None
    seed: int | None
    favourite: bool | None
    since: str | None
    until: str | None
    trashed: bool
    tag: str | None
