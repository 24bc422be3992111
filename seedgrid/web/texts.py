"""The texts of the page in a language: for its scripts, its document, and from Python."""

from functools import cache

from seedgrid.core.errors import SeedGridError
from seedgrid.core.fields import ON_PAGE
from seedgrid.locales import ENGLISH, english, locales


def say(key: str, language: str, **data: object) -> str:
    """Return a text in a language, filled in; an empty one where there is no such key."""
    text = page_texts(language).get(key, "")
    return text.format(**data) if data else text


def sentence(error: SeedGridError, language: str) -> str:
    """Return the sentence of an error in a language."""
    return page_texts(language)[f"error_{error.code}"].format(**error.data)


@cache
def page_texts(language: str) -> dict[str, str]:
    """Return every text, error and reason by key; in English where it is not translated."""
    texts: dict[str, str] = {}
    for locale in (english(), locales()[language]):
        texts |= {**locale.words, **locale.later}
        texts |= {f"error_{code}": each for code, each in locale.errors.items()}
        texts |= {f"reason_{code}": each for code, each in locale.reasons.items()}
    return texts


def words_of(language: str) -> dict[str, str]:
    """Return the words of the page's document, and what each field does as `NAME_about`."""
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
    """Return the first known language among tags or `Accept-Language` headers, or English."""
    for wish in wishes:
        for tag in (wish or "").split(","):
            name = tag.strip().lower().replace("_", "-").split(";")[0].split("-")[0]
            if name in locales():
                return name
    return ENGLISH
