r"""Text of strangers, made plain for where it is written: a terminal, a log, a sentence, JSON.

A picture from anywhere may hold, in its words and names, the commands of a terminal, the ends of
lines and the marks that turn the direction of reading. Here they become what can be seen. Letters
of every script, and the joiners that some scripts and emoji need, stay as they are.

    >>> one_line("a fox\n\x1b[31mTrusted: yes")
    'a fox \\x1b[31mTrusted: yes'
"""

import json
from typing import Final

_LINE_ENDS: Final = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_DIRECTIONS: Final = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HALVES: Final = tuple(range(0xD800, 0xE000))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_VISIBLE: Final = {code: _escape(code) for code in (*_CONTROLS, *_DIRECTIONS, *_HALVES)}
_ON_ONE_LINE: Final = _VISIBLE | {ord(character): " " for character in _LINE_ENDS}
_ON_MANY_LINES: Final = _VISIBLE | {ord("\n"): "\n", ord("\t"): "\t"}
# JSON escapes the controls below the space itself; those that stand in it are its own layout.
_IN_JSON: Final = {code: f"\\u{code:04x}" for code in _VISIBLE if code >= 0x7F}


def one_line(text: str, *, limit: int | None = None) -> str:
    """Return the text on one line, with nothing in it that moves a cursor or hides a letter."""
    if limit is None:
        return text.translate(_ON_ONE_LINE)
    plain = text[: limit + 1].translate(_ON_ONE_LINE)
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def many_lines(text: str) -> str:
    """Return the text with its line ends and tabs, and everything else unseen made visible."""
    return text.translate(_ON_MANY_LINES)


def json_text(value: object, *, indent: int | None = None) -> str:
    """Write JSON that is the same data and can be looked at in any terminal."""
    return json.dumps(value, ensure_ascii=False, indent=indent).translate(_IN_JSON)
