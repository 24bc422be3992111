"""The library page's services: browse, search, open, throw away, take in, links."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from foreign_files import file_with
from PIL import Image
from servers import client_of

from seedgrid.core.fields import IN_LINKS, ON_PAGE
from seedgrid.core.picture import Entry
from seedgrid.studio import Studio
from seedgrid.web.actions.library import MAX_PICTURES, LibraryActions, Query
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageState

ME = PageState(visitor="0" * 32)


@pytest.fixture
def actions(services: PageServices) -> LibraryActions:
    return services.library


def ask(actions: LibraryActions, **query: Any) -> dict[str, Any]:
    answer = actions.on_search(Query(**query), ME).library
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"text": "red"}, 4),
        ({"text": "house red"}, 2),
        ({"seed": 9}, 3),
        ({"seed": 1}, 1),
        ({"model": "fake"}, 6),
        ({"model": "other"}, 0),
        ({"favourite": True}, 0),
        ({"trashed": True}, 0),
        ({"since": "2020-01-01T15:00:00.000"}, 6),
        ({"until": "2020-01-01T15:00:00.000"}, 0),
    ],
)
def test_each_filter_narrows(
    actions: LibraryActions, works: tuple[tuple[Entry, ...], ...], query: dict[str, Any], count: int
) -> None:
    """Words, seed, model, favourite, trash and dates, each by itself."""
    assert len(works) == 3
    assert len(ask(actions, **query)["items"]) == count


@pytest.mark.parametrize("action", ["search", "trash", "mark"])
@pytest.mark.parametrize(
    "rubbish",
    [
        *(None, 7, {"after": 2**63}, {"text": 3}, {"since": "soon"}, {"seed": -1}, {"other": 1}),
        {"trashed": True, "favourite": True, "pictures": ["../../etc"]},
        {"trashed": True, "favourite": True, "pictures": ["f" * 32] * (MAX_PICTURES + 1)},
        {"trashed": "yes", "favourite": "yes"},
        {"trashed": 1, "add": ["x"] * 21},
        {"trashed": 1, "remove": [["x"]]},
    ],
)
def test_what_is_no_question_gets_no_answer(
    studio: Studio, tmp_path: Path, action: str, rubbish: object
) -> None:
    """A browser may send anything."""
    client = client_of(PageServices(studio), tmp_path)
    assert client.post(f"/seedgrid/do/{action}", json={"asked": rubbish}).status_code == 422


def test_a_note_is_kept(
    actions: LibraryActions, studio: Studio, works: tuple[tuple[Entry, ...], ...]
) -> None:
    """What was written is in the library; what cannot be text is refused."""
    picture_id = works[0][0].id
    assert actions.on_note(picture_id, "for the cover", ME).status is None
    assert studio.library.get(picture_id).note == "for the cover"
    refused = actions.on_note(picture_id, "\x00", ME).status
    assert refused["key"] == "error_prompt_characters"


def upload(tmp_path: Path, source: Path | bytes, name: str = "x.png") -> str:
    """A file as Gradio puts it aside: in a folder of its own."""
    folder = tmp_path / "upload"
    folder.mkdir()
    target = folder / name
    if isinstance(source, bytes):
        target.write_bytes(source)
    else:
        shutil.copy(source, target)
    return str(target)


def test_a_dropped_picture_of_another_tool_fills_in_the_fields(
    actions: LibraryActions, tmp_path: Path
) -> None:
    """Words and seeds come along, its other settings are offered, and what cannot come is said."""
    settings = "Steps: 20, Sampler: DDIM, CFG scale: 7, Seed: 42, Size: 64x64"
    file = file_with(parameters=f"a castle\nNegative prompt: fog\n{settings}")
    shown = actions.on_drop([upload(tmp_path, file)], ME)
    others = [each for each in ON_PAGE if each in IN_LINKS and each.name != "model"]
    empty = {each.name: False if each.value_type is bool else "" for each in others}
    assert shown.fields == empty | {"prompt": "a castle", "seeds": "42", "negative": "fog"}
    assert shown.state is None
    assert shown.status["data"]["reasons"]
    settings = {"steps": "20", "guidance": "7", "size": "64x64", "scheduler": "DDIM"}
    assert shown.status["data"]["settings"] == settings


def test_words_that_change_are_explained(actions: LibraryActions, tmp_path: Path) -> None:
    """Generate paints the first words; the status line says how to refine with the later ones."""
    text = "[a fox:a fox, at night:0.4]\nSteps: 20, Sampler: DDIM, CFG scale: 7, Seed: 42"
    shown = actions.on_drop([upload(tmp_path, file_with(parameters=text))], ME)
    assert shown.fields["prompt"] == "a fox"
    assert "error_import_hold" in [each["key"] for each in shown.status["data"]["reasons"]]


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [(b"not a picture", "x.png", "picture_not_png"), (b"not a bundle", "x.zip", "bundle_damaged")],
)
def test_a_dropped_file_that_is_neither_is_explained(
    actions: LibraryActions, tmp_path: Path, content: bytes, name: str, code: str
) -> None:
    """One clear message at the field, and nothing else changes."""
    shown = actions.on_drop([upload(tmp_path, content, name)], ME)
    assert (shown.status["key"], shown.status["field"]) == (f"error_{code}", "drop")
    assert (shown.state, shown.fields) == (None, None)


def test_unreadable_settings_hinder_no_start(actions: LibraryActions, tmp_path: Path) -> None:
    """As one without any is."""
    file = file_with(workflow="{}")
    assert actions.on_drop([upload(tmp_path, file)], ME).fields["start"]


def test_a_bundle_of_pictures_without_recipes_is_explained(
    actions: LibraryActions, tmp_path: Path
) -> None:
    """It is no picture to begin from: what its pictures lack is said."""
    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    with zipfile.ZipFile(tmp_path / "red.zip", "w") as bundle:
        bundle.write(tmp_path / "red.png", "red.png")
    shown = actions.on_drop([upload(tmp_path, tmp_path / "red.zip", "x.zip")], ME)
    assert shown.status["key"] == "error_picture_without_recipe"
