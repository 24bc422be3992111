"""Vocabulary: the words that a model declares, and what people call them in other languages.

A small model knows few words and paints mush of all others; one that says which (`seedgrid.json`)
lets us say so before a click. Names in other languages are replaced by the model's own words.
Knows no model and no screen.

    >>> words = Vocabulary(known=frozenset({"cat", "watercolor"}), names={"猫": "cat"})
    >>> words.unknown("a cat over Tokyo")
    ('Tokyo',)
    >>> words.painted("猫，watercolor")
    'cat, watercolor'
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

_SMALL: Final = frozenset(
    word
    for line in (
        "a an the one of in on at by to as and or with for without over under above below near is",
        "behind beside between through into from are this that its his her my our very some two",
    )
    for word in line.split()
)
"""Small words of English, of which nobody expects a picture."""

_WORD: Final = re.compile(r"[^\W_]+")
_WIDE: Final = str.maketrans(
    {"，": ", ", "、": ", ", "。": ". ", "；": "; ", "：": ": ", "\u3000": " "}
)
_MAX_TOLD: Final = 8


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What a model declares of words.

    Attributes:
        known: Single words in small letters, English.
        names: What something is called in other languages, and the model's own words for it;
            empty words for what says nothing in a prompt, such as a particle.
        shown: By language and the model's own words: the name under which they are offered.
    """

    known: frozenset[str]
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the words that the model does not know, as they were written, each once."""
        words = {word.casefold(): word for word in reversed(_WORD.findall(self.painted(text)))}
        strange = [word for low, word in words.items() if not self._knows(low)]
        return tuple(reversed(strange))[:_MAX_TOLD]

    def painted(self, text: str) -> str:
        """Return the words that are painted for what was typed.

        Where no name of another language stands in it, the text is left as it is, every character.
        """
        found = text
        for name in self.names:
            if " " in name:
                found = found.replace(name, f" {self.names[name]} ")
        parts = re.split(r"([^\W_]+)", found.translate(_WIDE))
        found = "".join(part if part.isascii() else self._translated(part) for part in parts)
        if found == text.translate(_WIDE):
            return text
        return re.sub(r" ([,.;:!?])", r"\1", " ".join(found.split()))

    def _translated(self, word: str) -> str:
        """Return a word's names as the model's own words; what is left of it stays as it is.

        Korean has spaces between words: one that is more than known names is another word.
        """
        is_korean = _is_korean(word)
        pieces: list[str] = []
        at = 0
        while at < len(word):
            names = self._by_letter.get(word[at], ())
            name = next((name for name in names if word.startswith(name, at)), None)
            if name is None and is_korean:
                return word
            pieces.append(word[at] if name is None else f" {self.names[name]} ")
            at += len(name or word[at])
        return "".join(pieces)

    @cached_property
    def _by_letter(self) -> dict[str, list[str]]:
        """The names by their first letter, the longest first."""
        found: dict[str, list[str]] = {}
        for name in sorted(self.names, key=len, reverse=True):
            found.setdefault(name[:1], []).append(name)
        return found

    def called(self, words: str, language: str) -> str:
        """Return the name of the model's own words in a language; themselves where it has none."""
        return self.shown.get(language, {}).get(words, words)

    def _knows(self, word: str) -> bool:
        return word in self.known or word in _SMALL or word.isdecimal()


def _is_korean(word: str) -> bool:
    return any("\uac00" <= letter <= "\ud7a3" for letter in word)
