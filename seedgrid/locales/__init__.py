"""Every word that SeedGrid says: one file a language, `en.json` beside `zh.json` and `ko.json`.

A file that is put here is a language of the page; English is complete, and what another file does
not say yet is said in English. Knows neither the page nor the errors that are worded here.

    locales()["zh"].words["generate"]
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
ENGLISH: Final = "en"
PAGE_SECTIONS: Final = ("page", "library", "verdict", "fields")
"""The parts of a file that only the page says; they share one set of keys."""
LATER_SECTION: Final = "later"
"""What the page says only when somebody opens the library or looks at pictures; its keys too."""


@dataclass(frozen=True, kw_only=True)
class Locale:
    """The words of one language; `{name}` in a sentence is filled in with data.

    Attributes:
        tag: What browsers and Gradio call the language, for example `"zh-CN"`.
        clause_joiner: What stands between sentences that are put into one.
        lowers_clauses: Whether such a sentence begins with a small letter.
        words: What the page says, by key.
        later: What it says of library, models and looking, by key.
        errors: The sentence of each error and notice, by its code.
        reasons: The sentence of each reason of a verdict, by its code.
    """

    tag: str
    clause_joiner: str
    lowers_clauses: bool
    words: Mapping[str, str]
    later: Mapping[str, str]
    errors: Mapping[str, str]
    reasons: Mapping[str, str]


def read_locale(path: Path) -> Locale:
    """Read the file of a language, and nothing but it.

    Raises:
        ValueError: It is not JSON.
        KeyError: It lacks a section.
    """
    content: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    words = {key: text for name in PAGE_SECTIONS for key, text in content[name].items()}
    return Locale(
        **content["language"],
        words=words,
        later=content[LATER_SECTION],
        errors=content["errors"],
        reasons=content["reasons"],
    )


@cache
def english() -> Locale:
    """Return the words of the command line, of Python, and of a page nobody else can read."""
    return read_locale(FOLDER / f"{ENGLISH}.json")


@cache
def locales() -> Mapping[str, Locale]:
    """Return every language by its name, English first; the name is that of its file."""
    others = sorted(path for path in FOLDER.glob("*.json") if path.stem != ENGLISH)
    return {ENGLISH: english()} | {path.stem: read_locale(path) for path in others}
