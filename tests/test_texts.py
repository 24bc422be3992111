"""Every word SeedGrid says is there in every language, and a language is one file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import app as program
from seedgrid import locales as words
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.locales import ENGLISH, english, locales
from seedgrid.storage.files import assets_folder
from seedgrid.web.server import page
from seedgrid.web.server.page import choose_language, document, page_texts

WEB = Path(page.__file__).parent.parent
SCRIPTS = sorted(assets_folder().glob("*.js"))
FILES = sorted(words.FOLDER.glob("*.json"))
SECTIONS = ("page", "fields", "library", "later", "verdict", "reasons", "errors")
# Keys that scripts put together: text(`cell_${state}`), and the like.
BUILT = {
    "cell_": ("empty", "waiting", "painting", "done", "stopped", "missed"),
    "verdict_": ("identical", "close", "altered", "drifted", "impossible"),
    "export_": ("png", "round"),
    "zoom_": ("before", "after"),
    "library_sort_": ("newest", "oldest", "favourites", "words"),
    "lock_": ("tested", "fails", "untested", "elsewhere"),
    "hints_": ("subjects", "styles", "modifiers", "attributes"),
}


def placeholders(sentence: str) -> set[str]:
    return set(re.findall(r"\{([^{}]*)\}", sentence))


def content(path: Path) -> dict[str, dict[str, str]]:
    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_doubles)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a key stands there twice"
    return found


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_language_says_all_that_english_says(path: Path, section: str) -> None:
    """Each file has the keys of `en.json` and no others, and fills in the same data."""
    ours, theirs = content(words.FOLDER / "en.json")[section], content(path)[section]
    assert set(theirs) == set(ours)
    wrong = [key for key in ours if placeholders(ours[key]) != placeholders(theirs[key])]
    assert not wrong
    assert all(sentence.strip() for sentence in theirs.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_filled_in_is_a_name_and_nothing_more(path: Path) -> None:
    """A format such as `{limit:g}` is Python's alone: the page's scripts showed it as it is."""
    sections = content(path)
    filled = {
        name for part in SECTIONS for said in sections[part].values() for name in placeholders(said)
    }
    assert {name for name in filled if not name.isidentifier()} == set()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_use_texts_that_exist(script: Path) -> None:
    """A key that a script asks for is in the table."""
    asked = set(re.findall(r"\btext\(\"(\w+)\"", script.read_text()))
    for prefix in re.findall(r"\btext\(`(\w+)\$\{", script.read_text()):
        asked |= {prefix + name for name in BUILT.get(prefix, ())}
    assert asked <= set(page_texts(ENGLISH))


def test_the_document_and_the_status_line_use_texts_that_exist() -> None:
    """A word of the template and a sentence for the status line are in the table."""
    view = (assets_folder() / "page.html").read_text()
    said = "".join(path.read_text() for path in (WEB / "serializers").glob("*.py"))
    asked = set(re.findall(r"\bt\.(\w+)", view)) | set(re.findall(r'"(status_\w+)"', said))
    assert asked <= set(english().words)
    assert len(asked) > 20


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The folder of languages with one file more, which is not translated to its end."""
    folder = Path(shutil.copytree(words.FOLDER, tmp_path / "locales"))
    told = content(folder / "en.json")
    told["language"] = {"tag": "de", "clause_joiner": "; ", "lowers_clauses": False}
    told["page"]["generate"] = "Erzeugen"
    told["errors"]["prompt_empty"] = "Der Prompt ist leer: sag, was das Bild zeigen soll."
    del told["page"]["stop"]
    told["page"]["retired"] = "Ein Satz von früher"  # of an older release: it is in nobody's way
    (folder / "de.json").write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.setattr(words, "FOLDER", folder)
    _read_anew()
    yield "de"
    _read_anew()


def _read_anew() -> None:
    words.locales.cache_clear()
    words.english.cache_clear()


def test_a_language_is_one_file(german: str) -> None:
    """Dropped into the folder it is offered everywhere: page, errors, `--lang`."""
    assert next(iter(locales())) == ENGLISH
    assert choose_language("qx-QX,de-AT;q=0.8") == german
    html = document(german, GUIDE_SUFFIXES).decode()
    assert 'lang="de"' in html
    assert ">Erzeugen</button>" in html
    assert "Der Prompt ist leer: sag, was das Bild zeigen soll." in html
    assert program._read_arguments(["--lang", german]).lang == german


def test_a_page_has_the_words_of_one_language() -> None:
    """All three were in every page: a third of what was ours in it, for everybody."""
    html = document(ENGLISH, GUIDE_SUFFIXES).decode()
    for language in set(locales()) - {ENGLISH}:
        assert page_texts(language)["status_unreachable"] not in html


@pytest.mark.parametrize(
    ("wishes", "language"),
    [
        (("ko-KR,ko;q=0.9,en;q=0.8",), "ko"),
        (("zh-Hans-CN",), "zh"),
        (("zh_TW",), "zh"),
        (("qx-QX,qx;q=0.9",), "en"),
        (("qx,ko",), "ko"),
        ((None, "zh", "ko"), "zh"),
        ((), "en"),
    ],
)
def test_the_first_language_of_ours_is_chosen(wishes: tuple[str, ...], language: str) -> None:
    """The strongest wish that can be met counts; English is for all others."""
    assert choose_language(*wishes) == language
