"""File names from words: safe on every system, in ASCII, of bounded length.

picture_filename("Labrador in the style of Vermeer, artsy", 2)
# 'labrador-in-the-style-of-vermeer-artsy-seed-2.png'
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

MAX_WORDS: Final = 80
"""Characters; no word is cut in two."""
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_NO_WORDS: Final = "seedgrid"


def picture_filename(prompt: str, seed: int) -> str:
    """Name a picture's file by its words and its seed.

    The seed at the end keeps it from the names that Windows reserves (`con`, `nul`); words of
    which no letter is left in ASCII, as in Chinese, give way to the program's name.
    """
    plain = unicodedata.normalize("NFKD", prompt[: 8 * MAX_WORDS]).lower()
    folded = (char for char in plain if not unicodedata.combining(char))
    spaced = "".join(char if char in _LETTERS else " " for char in folded)
    return f"{_joined(spaced.split()) or _NO_WORDS}-seed-{seed}.png"


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names in their order; one that was there before gets a number, `fox-2.png`."""
    given: dict[str, int] = {}  # and the last number that each got
    for name in names:
        stem, dot, ending = name.rpartition(".")
        other, number = name, given.get(name, 1)
        while other in given:
            number += 1
            other = f"{stem}-{number}{dot}{ending}"
        given[name] = number
        given[other] = 1
    return list(given)


def _joined(words: list[str]) -> str:
    """Join as many whole words as fit; of one that is too long alone, its beginning."""
    joined = words[0][:MAX_WORDS] if words else ""
    for word in words[1:]:
        if len(joined) + 1 + len(word) > MAX_WORDS:
            break
        joined += f"-{word}"
    return joined
