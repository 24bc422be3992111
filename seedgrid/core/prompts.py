"""A base prompt and its variations, and the word-level difference between two prompts.

Knows nothing of seeds or models: text in, text out.

    >>> append("a red fox", ", artsy"), append("a red fox", "at night")
    ('a red fox, artsy', 'a red fox at night')
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Final, Literal

GUIDE_PROMPT: Final = "Labrador in the style of Vermeer"
"""The example of the Diffusers guide on deterministic batch generation."""

GUIDE_SUFFIXES: Final = (", highly realistic", ", artsy", ", trending", ", colorful")
"""The four suffixes of the guide."""

FURTHER_SUFFIXES: Final = (
    ", at night",
    ", black and white",
    ", in the fog",
    ", vintage",
    ", close-up",
    ", golden hour",
    ", from above",
    ", in winter",
)
"""For second rounds, where a model does not say which words it knows."""

MAX_COMPARISONS: Final = 100_000
"""Of one word with another; where more would be needed, the words between are all another."""


def says_something(suffix: str) -> bool:
    """Tell whether a suffix holds more than marks."""
    return bool(suffix.strip(" ,;.\n\t，；。、\u3000"))


def append(prompt: str, suffix: str) -> str:
    """Append a suffix as it is when it starts with punctuation, after a space otherwise."""
    suffix = suffix.rstrip()
    if not suffix:
        return prompt
    is_glued = suffix[0] in ",.;:!?，。；：！？、"
    return prompt.rstrip() + (suffix if is_glued else " " + suffix.lstrip())


Kind = Literal["same", "added", "removed"]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of words that two prompts share, or that one of them lacks."""

    kind: Kind
    text: str


def compare_words(before: str, after: str) -> tuple[Piece, ...]:
    """Tell which words were added and which were removed.

    Returns:
        The pieces in reading order; joining all but the removed ones gives `after`, joining all
        but the added ones gives `before`.
    """
    old, new = _tokens(before), _tokens(after)
    head = _num_shared(old, new)
    tail = _num_shared(old[head:][::-1], new[head:][::-1])
    middle = _compare(old[head : len(old) - tail], new[head : len(new) - tail])
    pieces = [("same", old[:head]), *middle, ("same", old[len(old) - tail :])]
    return tuple(_joined(pieces))


def _num_shared(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _compare(old: list[str], new: list[str]) -> Iterator[tuple[Kind, list[str]]]:
    """Compare word by word what lies between the beginning and the end that both share.

    The comparison takes the square of the number of words, and of some texts the cube: a stranger's
    two long prompts would keep a server busy for minutes.
    """
    if len(old) * len(new) > MAX_COMPARISONS:
        yield from (("removed", old), ("added", new))
        return
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            yield "same", old[old_from:old_to]
        else:
            yield from (("removed", old[old_from:old_to]), ("added", new[new_from:new_to]))


def _joined(pieces: Iterable[tuple[Kind, list[str]]]) -> Iterator[Piece]:
    """Join neighbours of one kind, and leave out what is empty."""
    said = ((kind, words) for kind, words in pieces if words)
    for kind, group in groupby(said, key=lambda piece: piece[0]):
        yield Piece(kind=kind, text="".join(word for _, words in group for word in words))


def _tokens(text: str) -> list[str]:
    """Split into words with the space before them, and single other characters.

    Scripts without spaces (Chinese, Japanese) are split by character.
    """
    return re.findall(r"\s*(?:[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\s])|\s+$", text)
