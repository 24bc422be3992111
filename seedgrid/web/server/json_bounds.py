"""What is too much in a JSON text, or no JSON at all, told before anything of it is built.

A megabyte of `{},{},…` becomes hundreds of megabytes of Python objects, and a deep nest ends the
reader's stack; NaN and half a character, which Python's reader takes, cannot be written again. One
pass over the bytes says so beforehand. Knows nothing of requests.

    problem(b"[" * 100_000)  # (413, "nested deeper than 32")
"""

import re
from typing import Final

MAX_DEPTH: Final = 32
MAX_VALUES: Final = 10_000
MAX_DIGITS: Final = 400
"""Reading a number takes the square of its digits; no float that is finite has more before `.`."""

_BRACKETS: Final = b"[]{}"
_NO_BRACKETS: Final = bytes(set(range(256)) - set(_BRACKETS))
# No two branches begin alike, so the time is in proportion to the length.
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?+', re.DOTALL)
_LONG_NUMBER: Final = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MAX_DIGITS + 1))
_NO_NUMBER: Final = re.compile(rb"NaN|Infinity")
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\[^u]|(?P<half>\\u[dD][89a-fA-F])"
)


def problem(text: bytes) -> tuple[int, str] | None:
    """Say what is wrong with a JSON text, if anything is; bad JSON is left to its reader.

    Returns:
        HTTP's status, 413 for too much and 400 for what cannot be, and a few words.
    """
    bare = _STRINGS.sub(b" ", text)
    if _LONG_NUMBER.search(bare):
        return 413, f"a number of more than {MAX_DIGITS} digits"
    if _NO_NUMBER.search(bare):
        return 400, "NaN or Infinity for a number"
    if any(found["half"] for found in _ESCAPES.finditer(text)):
        return 400, "half a character (a surrogate alone), which no file can hold"
    # Each value but the first of all follows a comma or an opening bracket.
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") >= MAX_VALUES:
        return 413, f"more than {MAX_VALUES:,} values"
    depth = 0
    for bracket in bare.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            return 413, f"nested deeper than {MAX_DEPTH}"
        if depth < 0:
            return None
    return None
