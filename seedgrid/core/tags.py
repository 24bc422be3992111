"""Tags: the artist's own words on pictures; all pictures with one are a collection.

A tag is one line of at most 40 characters in which nothing is hidden, and a picture has at most 20.
Knows no library.

    >>> changed_tags(("night",), add=["  Red   fox "], remove=["Night"])
    ('Red fox',)
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from seedgrid.core.errors import InputError
from seedgrid.core.plain import one_line

MAX_TAGS: Final = 20
MAX_TAG_CHARACTERS: Final = 40


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A tag, and how many pictures outside the trash have it."""

    tag: str
    num_pictures: int


def check_tag(text: str) -> str:
    """Return a tag as it is kept: one kind of each letter, single spaces, no `#` in front."""
    # A text that is longer than all the spaces it may have is not looked at.
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


def readable_tags(found: object) -> tuple[str, ...]:
    """Return what can be a tag of what a file says; anything else is left out."""
    tags: dict[str, str] = {}
    for each in found if isinstance(found, list) else ():
        try:
            tag = check_tag(each) if isinstance(each, str) else ""
        except InputError:
            continue
        if tag and len(tags) < MAX_TAGS:
            tags.setdefault(tag.casefold(), tag)
    return tuple(tags.values())
