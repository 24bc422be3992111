"""Every word on the page is there in every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seedgrid.core.errors import MESSAGES
from seedgrid.verify.reasons import REASONS
from seedgrid.web.locales.error_texts import ERROR_TEXTS
from seedgrid.web.locales.texts import TEXTS, choose_language, labels, page_texts
from seedgrid.web.locales.words import LOCALES
from seedgrid.web.server import app

UI = Path(app.__file__).parent
SCRIPTS = sorted(app.ASSETS.glob("*.js"))
# Keys that scripts put together: text(`cell_${state}`), and the like.
BUILT = {
    "cell_": ("empty", "waiting", "painting", "done", "stopped"),
    "verdict_": ("identical", "close", "drifted", "impossible"),
    "hints_": ("subjects", "styles", "modifiers", "attributes"),
}


def placeholders(sentence: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", sentence))


@pytest.mark.parametrize("key", TEXTS)
def test_a_text_is_complete(key: str) -> None:
    """All languages say something, and fill in the same data."""
    words = TEXTS[key]
    assert all(sentence.strip() for sentence in words)
    assert placeholders(words.en) == placeholders(words.zh) == placeholders(words.ko)


@pytest.mark.parametrize("code", MESSAGES)
def test_an_error_is_translated(code: str) -> None:
    """Each error has its sentence in Chinese and Korean, with the same data in it."""
    words = ERROR_TEXTS[code]
    assert all(sentence.strip() for sentence in words)
    assert placeholders(words.zh) == placeholders(words.ko) == placeholders(MESSAGES[code])


def test_nothing_is_translated_that_nobody_says() -> None:
    """No sentence outlives its error."""
    assert set(ERROR_TEXTS) == set(MESSAGES)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_use_texts_that_exist(script: Path) -> None:
    """A key that a script asks for is in the table."""
    asked = set(re.findall(r"\btext\(\"(\w+)\"", script.read_text()))
    for prefix in re.findall(r"\btext\(`(\w+)\$\{", script.read_text()):
        asked |= {prefix + name for name in BUILT.get(prefix, ())}
    assert asked <= set(page_texts())


@pytest.mark.parametrize("code", REASONS)
def test_a_reason_of_a_verdict_is_translated(code: str) -> None:
    """Each reason is in the table, with the same data in it."""
    words = TEXTS[f"reason_{code}"]
    assert placeholders(words.en) == placeholders(re.sub(r":\w+}", "}", REASONS[code]))


def test_labels_use_texts_that_exist() -> None:
    """A label of the view and a sentence for the status line are in the table."""
    view = (UI / "view.py").read_text() + (UI / "settings.py").read_text()
    say = (UI / "show.py").read_text()
    asked = set(re.findall(r'i18n\("(\w+)"\)', view)) | set(re.findall(r'"(status_\w+)"', say))
    assert asked <= set(TEXTS)
    assert len(asked) > 20


def test_gradio_gets_every_label_in_every_language() -> None:
    """The label tables have one key set."""
    tables = labels()
    assert set(tables) == set(LOCALES.values())
    assert all(set(table) == set(TEXTS) for table in tables.values())


@pytest.mark.parametrize(
    ("wishes", "language"),
    [
        (("ko-KR,ko;q=0.9,en;q=0.8",), "ko"),
        (("zh-Hans-CN",), "zh"),
        (("zh_TW",), "zh"),
        (("fr-FR,fr;q=0.9",), "en"),
        (("fr,ko",), "ko"),
        ((None, "zh", "ko"), "zh"),
        ((), "en"),
    ],
)
def test_the_first_language_of_ours_is_chosen(wishes: tuple[str, ...], language: str) -> None:
    """The strongest wish that can be met counts; English is for all others."""
    assert choose_language(*wishes) == language
