"""The page's words in each language; the words themselves are data in `seedgrid/locales/`."""

from collections.abc import Mapping

from seedgrid.core.fields import ON_PAGE
from seedgrid.locales import ENGLISH, Locale, english, locales


def say(key: str, language: str) -> str:
    """Return a word of the page in a language, else in English; empty if there is none."""
    return locales()[language].words.get(key) or english().words.get(key, "")


def page_texts(language: str) -> dict[str, str]:
    """Return every text, error and reason of a language by key, for the scripts of the page."""
    return {**_of_page(english()), **_of_page(locales()[language])}


def words_of(language: str) -> dict[str, str]:
    """Return the words of the page's document, with a description of each field.

    The description also says whether the field changes pixels or bits.
    """
    locale = locales()[language]
    words = {**english().words, **locale.words}
    space = "" if locale.tag.startswith("zh") else " "
    about = {
        f"{row.name}_about": space.join(
            filter(None, (words.get(f"{row.name}_info"), words.get(f"bits_{row.effect}")))
        )
        for row in ON_PAGE
    }
    return words | about


def choose_language(*wishes: str | None) -> str:
    """Return the first available language of the wishes, else English.

    Args:
        wishes: Language tags or `Accept-Language` headers, the preferred one first.
    """
    for wish in wishes:
        for tag in (wish or "").split(","):
            name = tag.strip().lower().replace("_", "-").split(";")[0].split("-")[0]
            if name in locales():
                return name
    return ENGLISH


def _of_page(locale: Locale) -> Mapping[str, str]:
    errors = {f"error_{code}": sentence for code, sentence in locale.errors.items()}
    reasons = {f"reason_{code}": sentence for code, sentence in locale.reasons.items()}
    return {**locale.words, **locale.later, **errors, **reasons}
