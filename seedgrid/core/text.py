r"""Text for terminals, logs, JSON, file names, addresses and commands; which names are valid.

A stranger's texts may hold terminal commands, line ends and marks that change the reading
direction. They are escaped; letters of every script, and joiners of scripts and emoji, stay.

    >>> one_line("a fox\n\x1b[31mTrusted: yes")
    'a fox \\x1b[31mTrusted: yes'
    >>> picture_filename("Labrador in the style of Vermeer, artsy", 2)
    'labrador-in-the-style-of-vermeer-artsy-seed-2.png'
    >>> is_hub_id("org/name"), is_revision("main"), library_release("2.13.0+cpu")
    (True, True, '2.13.0')
"""

import json
import os
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Final

_LINE_ENDS: Final = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_DIRECTIONS: Final = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SURROGATES: Final = tuple(range(0xD800, 0xE000))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_ESCAPES: Final = {code: _escape(code) for code in (*_CONTROLS, *_DIRECTIONS, *_SURROGATES)}
_ON_ONE_LINE: Final = _ESCAPES | {ord(character): " " for character in _LINE_ENDS}
_ON_MANY_LINES: Final = _ESCAPES | {ord("\n"): "\n", ord("\t"): "\t"}
# `json.dumps` escapes controls below the space; those in its output come from `indent`.
_IN_JSON: Final = {code: f"\\u{code:04x}" for code in _ESCAPES if code >= 0x7F}


def one_line(text: str, *, limit: int | None = None) -> str:
    """Return the text on one line, control characters escaped, at most `limit` characters."""
    if limit is None:
        return text.translate(_ON_ONE_LINE)
    plain = text[: limit + 1].translate(_ON_ONE_LINE)
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def many_lines(text: str) -> str:
    """Return the text with its line ends and tabs, all other control characters escaped."""
    return text.translate(_ON_MANY_LINES)


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return JSON of a value that is safe to print in a terminal."""
    return json.dumps(value, ensure_ascii=False, indent=indent).translate(_IN_JSON)


_ID_PART: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_HUB_ID: Final = re.compile(rf"{_ID_PART}/{_ID_PART}")
_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_RELEASE: Final = re.compile(
    r"[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}(?:(?:a|b|rc)[0-9]{1,3})?(?:\.post[0-9]{1,3})?"
    r"(?:\.dev[0-9]{1,8})?"
)
_FORBIDDEN: Final = frozenset('/\\:*?"<>|')
_MAX_SEGMENT: Final = 200


def is_hub_id(text: str) -> bool:
    """Tell whether a text is `org/name` by the hub's rules, and so neither a path nor an option.

    Source: https://github.com/huggingface/huggingface_hub, `utils/_validators.py`
    """
    is_spelled = _HUB_ID.fullmatch(text) is not None
    return is_spelled and not any(part in text for part in ("--", "..")) and text[-4:] != ".git"


def is_revision(text: str) -> bool:
    """Tell whether a text can be a commit, a tag or a branch; names with a slash are refused."""
    return _REVISION.fullmatch(text) is not None and ".." not in text


def is_folder_name(text: str) -> bool:
    """Tell whether a text is a plain name of a folder or file, and no path."""
    return (
        0 < len(text.encode(errors="replace")) <= _MAX_SEGMENT
        and text.isprintable()
        and text[0] not in ".-~"
        and not _FORBIDDEN & set(text)
    )


def is_model_name(text: str) -> bool:
    """Tell whether a text is a model's name in a recipe: a hub id, or a folder's or file's name."""
    return is_hub_id(text) or is_folder_name(text)


def library_release(version: str) -> str | None:
    """Return a release as on PyPI, `"2.13.0"`, without a build's suffix; None for other texts."""
    public = version.partition("+")[0]
    return public if _RELEASE.fullmatch(public) else None


MAX_NAME_CHARACTERS: Final = 80  # Of the words in a file name
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_FALLBACK_NAME: Final = "seedgrid"


def expanded(path: str | Path) -> Path:
    """Return a path with its `~` replaced; `~name` stays where there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 (`Path.expanduser` raises for `~name`)


def picture_filename(prompt: str, seed: int, change: str = "") -> str:
    """Name a file by words and seed; `seedgrid-seed-2.png` if no word has ASCII letters or digits.

    Windows reserves names such as `con`; none of them ends with a seed.
    """
    words, changed = _plain_words(prompt), _plain_words(change)
    if changed and words[-len(changed) :] == changed:
        words = words[: -len(changed)]
    end = _joined(changed, MAX_NAME_CHARACTERS // 2)
    start = _joined(words, MAX_NAME_CHARACTERS - len(end) - 1)
    return f"{'-'.join(filter(None, (start, end))) or _FALLBACK_NAME}-seed-{seed}.png"


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names in their order; a repeated one gets a number, `fox-2.png`."""
    given: dict[str, int] = {}  # Names given so far, with the last number added to each
    for name in names:
        stem, dot, ending = name.rpartition(".")
        other, number = name, given.get(name, 1)
        while other in given:
            number += 1
            other = f"{stem}-{number}{dot}{ending}"
        given[name] = number
        given[other] = 1
    return list(given)


def _plain_words(text: str) -> list[str]:
    """Return the words in small letters and digits of ASCII."""
    plain = unicodedata.normalize("NFKD", text[: 8 * MAX_NAME_CHARACTERS]).lower()
    folded = (char for char in plain if not unicodedata.combining(char))
    return "".join(char if char in _LETTERS else " " for char in folded).split()


def _joined(words: list[str], limit: int) -> str:
    """Join as many whole words as fit; a first word that is too long is cut."""
    joined = words[0][:limit] if words else ""
    for word in words[1:]:
        if len(joined) + 1 + len(word) > limit:
            break
        joined += f"-{word}"
    return joined


def write_decimal(value: float) -> str:
    """Write a number without an exponent, so that reading it gives the same float."""
    return f"{Decimal(repr(value)):f}".removesuffix(".0")
