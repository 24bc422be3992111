r"""Prompt weights as AUTOMATIC1111's users write them: `(word:1.3)`, `(word)`, `[word]`.

`(word)` counts 1.1 times, `((word))` 1.1 times that, `[word]` the 1.1th part, `(word:1.3)` as much
as it says; `\(` is a bracket. What is left open counts to the end. Text in, pieces out: what a
weight does to a picture is `diffusion/word_weights.py`.

    >>> read_weights("a (red:1.3) fox")
    (('a ', 1.0), ('red', 1.3), (' fox', 1.0))

Source: https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#attentionemphasis
"""

import re
from typing import Final

from seedgrid.core.errors import InputError

MAX_WEIGHT: Final = 4.0

_STEP: Final = 1.1
_MAX_DEPTH: Final = 8
"""Brackets that are deeper are read as brackets: no word needs to count twice over."""
_MAX_NUMBER: Final = 24
"""Characters; more than `_NUMBER` can find."""
_NUMBER: Final = re.compile(r":\s{0,4}+([+-]?\d{0,6}+(?:\.\d{0,6}+)?)\s{0,4}+\Z")
_CLOSES: Final = {")": "(", "]": "["}

Pieces = tuple[tuple[str, float], ...]
"""Stretches of words and what each counts."""


def read_weights(prompt: str) -> Pieces:
    """Split a prompt into its words and what they count.

    Raises:
        InputError: `weight_range`.
    """
    found: list[tuple[str, float]] = []
    opened: list[tuple[str, int]] = []  # the bracket, and how many pieces stood before it
    said = ""
    places = iter(range(len(prompt)))
    for at in places:
        sign = prompt[at]
        if sign == "\\" and prompt[at + 1 : at + 2] in tuple("()[]\\"):
            said += prompt[next(places)]
        elif sign in "([" and len(opened) < _MAX_DEPTH:
            found.append((said, 1.0))
            opened.append((sign, len(found)))
            said = ""
        elif sign in ")]" and opened and opened[-1][0] == _CLOSES[sign]:
            _, start = opened.pop()
            said, weight = _weighed(said, sign)
            found.append((said, 1.0))
            found[start:] = [(text, own * weight) for text, own in found[start:]]
            said = ""
        else:
            said += sign
    found.append((said, 1.0))
    while opened:
        sign, start = opened.pop()
        weight = _STEP if sign == "(" else 1 / _STEP
        found[start:] = [(text, own * weight) for text, own in found[start:]]
    return _joined(found)


def plain_words(prompt: str) -> str:
    """Return the words of a prompt without brackets and numbers."""
    return "".join(text for text, _ in read_weights(prompt))


def _weighed(said: str, sign: str) -> tuple[str, float]:
    """Return the words of a bracket, without their number, and what they count."""
    number = _NUMBER.search(said[-_MAX_NUMBER:]) if sign == ")" else None
    if number is None or not any(each.isdigit() for each in number[1]):
        return said, _STEP if sign == ")" else 1 / _STEP
    return said[: len(said) - len(number[0])], float(number[1])


def _joined(found: list[tuple[str, float]]) -> Pieces:
    """Join neighbours that count the same, and leave out what is empty."""
    pieces: list[tuple[str, float]] = []
    for text, weight in found:
        if not -MAX_WEIGHT <= weight <= MAX_WEIGHT:
            raise InputError(
                "weight_range", field="prompt", value=f"{weight:g}", limit=f"{MAX_WEIGHT:g}"
            )
        if pieces and pieces[-1][1] == weight:
            pieces[-1] = (pieces[-1][0] + text, weight)
        elif text:
            pieces.append((text, weight))
    return tuple(pieces)
