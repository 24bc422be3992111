"""A base prompt and its variations, and the word-level difference between two prompts.

Knows nothing of seeds or models: text in, text out.

    >>> vary("a red fox", [", artsy", "a blue fox"])
    ('a red fox, artsy', 'a red fox a blue fox')
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from seedgrid.core.errors import InputError

GUIDE_PROMPT: Final = "Labrador in the style of Vermeer"
"""The example of the Diffusers guide on deterministic batch generation."""

GUIDE_SUFFIXES: Final = (", highly realistic", ", artsy", ", trending", ", colorful")
"""The four suffixes of the guide."""


def vary(prompt: str, suffixes: Sequence[str]) -> tuple[str, ...]:
    """Append each suffix to the prompt, as the guide does.

    Args:
        prompt: The base prompt.
        suffixes: Added as they are when they start with punctuation, after a space otherwise.
            Blank ones are left out.

    Returns:
        One prompt for each suffix that says something.

    Raises:
        InputError: `variations_empty` when none does.
    """
    wanted = [suffix.rstrip() for suffix in suffixes if suffix.strip(" ,;.\n\t")]
    if not wanted:
        raise InputError("variations_empty", field="vary")
    return tuple(prompt.rstrip() + _glued(suffix) for suffix in wanted)


def _glued(suffix: str) -> str:
    return suffix if suffix[0] in ",.;:!?" else " " + suffix.lstrip()


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of words that two prompts share, or that one of them lacks."""

    kind: Literal["same", "added", "removed"]
    text: str


def compare_words(before: str, after: str) -> tuple[Piece, ...]:
    """Tell which words were added and which were removed.

    Args:
        before: The parent's prompt.
        after: The child's prompt.

    Returns:
        The pieces in reading order; joining all but the removed ones gives `after`, joining all
        but the added ones gives `before`.
    """
    old, new = _tokens(before), _tokens(after)
    pieces: list[Piece] = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            pieces.append(Piece(kind="same", text="".join(old[old_from:old_to])))
            continue
        if old_from < old_to:
            pieces.append(Piece(kind="removed", text="".join(old[old_from:old_to])))
        if new_from < new_to:
            pieces.append(Piece(kind="added", text="".join(new[new_from:new_to])))
    return tuple(pieces)


def _tokens(text: str) -> list[str]:
    """Split into words with the space before them, and single other characters.

    Scripts without spaces (Chinese, Japanese) are split by character.
    """
    return re.findall(r"\s*(?:[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\s])|\s+$", text)
