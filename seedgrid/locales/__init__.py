"""All texts that users see: one JSON file a language, `en.json` beside `zh.json` and `ko.json`.

A file that is put here is a language of the page; English is complete, and a text that another file
lacks is shown in English.
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
"""The sections of a file that become `words`; no key stands in two of them."""
LATER_SECTION: Final = "later"
"""Texts of the library, the models panel and the large view, which the page fetches later."""


@dataclass(frozen=True, kw_only=True)
class Locale:
    """The texts of one language; data replaces `{name}` in a sentence."""

    tag: str  # What browsers and Gradio call the language, for example `"zh-CN"`
    clause_joiner: str  # The separator of sentences that are joined into one
    lowers_clauses: bool  # Whether a joined sentence begins with a small letter
    words: Mapping[str, str]  # Texts of the page, by key
    later: Mapping[str, str]  # Texts of `LATER_SECTION`, by key
    errors: Mapping[str, str]  # The sentence of each error and notice, by its code
    reasons: Mapping[str, str]  # The sentence of each reason of a verdict, by its code


def read_locale(path: Path) -> Locale:
    """Read the file of a language; raise ValueError for no JSON, KeyError without a section."""
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
    """Return English: the language of the command line and Python, and the page's fallback."""
    return read_locale(FOLDER / f"{ENGLISH}.json")


@cache
def locales() -> Mapping[str, Locale]:
    """Return every language by its name, English first; the name is that of its file."""
    others = sorted(path for path in FOLDER.glob("*.json") if path.stem != ENGLISH)
    return {ENGLISH: english()} | {path.stem: read_locale(path) for path in others}
