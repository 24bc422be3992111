"""Words: one text in the languages of the page."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Language = Literal["en", "zh", "ko"]
LOCALES: Final[dict[Language, str]] = {"en": "en", "zh": "zh-CN", "ko": "ko"}


class Words(NamedTuple):
    """One text in the languages of the page; `{name}` is filled in with data."""

    en: str
    zh: str
    ko: str
