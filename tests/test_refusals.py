"""A library that refuses while the page is open: whoever clicks, looks or waits is told why."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from following import follow, nowhere
from servers import client_of

from seedgrid.web.serializers.form import FormPayload, RoundPayload
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageUpdate

ASKED = FormPayload(prompt="a red fox", seeds="5-6", steps="2", size="64x64")
VARY = RoundPayload(vary=(", neon",))


def refuse(services: PageServices) -> None:
    """Put a file where the folder was: nothing can be read or made there."""
    folder = services.studio.library_folder
    shutil.rmtree(folder)
    folder.write_text("in the way")


def painted(services: PageServices) -> dict[str, Any]:
    """Paint a grid and pick its first picture; return the place."""
    shown = services.handlers.on_generate(ASKED, nowhere())
    place = shown.state
    news = follow(services.handlers, place)[-1]
    return place.move(picked=news.stage["cells"][0]["id"])


CLICKS: dict[str, Callable[[PageServices, dict[str, Any]], PageUpdate]] = {
    "load": lambda a, place: a.handlers.on_load(place),
    "generate": lambda a, place: a.handlers.on_generate(ASKED, place),
    "refine": lambda a, place: a.handlers.on_refine(VARY, place),
    "again": lambda a, place: a.handlers.on_again(place),
    "pick": lambda a, place: a.handlers.on_pick(place.picked, place),
    "go": lambda a, place: a.handlers.on_go(place.round, place),
    "back": lambda a, place: a.handlers.on_back(place.move(run=None)),
    "favourite": lambda a, place: a.handlers.on_favourite(place.picked, True, place),
    "open": lambda a, place: a.library.on_open(place.picked, place),
    "example": lambda a, place: a.library.on_example(1, place),
}


@pytest.mark.parametrize("click", CLICKS)
def test_a_click_says_what_hinders(services: PageServices, click: str) -> None:
    """A pick in a library whose database was overwritten was once answered with HTTP 500."""
    place = painted(services)
    refuse(services)
    shown = CLICKS[click](services, place)
    assert (shown.status["key"], shown.status["kind"]) == ("error_folder_refuses", "error")
    assert shown.status["epoch"] >= place.epoch


def test_a_stream_tells_it_and_ends(services: PageServices) -> None:
    """It once broke off; the pictures of the run are shown all the same."""
    place = painted(services)
    refuse(services)
    news = follow(services.handlers, place)[-1]
    assert [cell["state"] for cell in news.stage["cells"]] == ["done", "done"]
    assert news.status["key"] == "error_folder_refuses"


def test_stop_asks_no_library(services: PageServices) -> None:
    place = painted(services)
    refuse(services)
    services.handlers.on_stop(place)


ADDRESSES = ("pictures/{}.png", "thumbs/{}.jpg", "download/{}/work.zip")


@pytest.mark.parametrize("path", ADDRESSES)
def test_an_address_says_what_hinders(services: PageServices, path: str, tmp_path: Path) -> None:
    picture_id = painted(services).picked
    with client_of(services, tmp_path) as client:
        address = f"/seedgrid/{path.format(picture_id)}"
        assert client.get(address).status_code == 200
        refuse(services)
        answer = client.get(address)
    assert answer.status_code == 409
    assert "folder_refuses" in answer.text
    assert "art" not in answer.text, "a folder's name is a visitor's secret"
