"""The page's services: values in, values out, on the fake backend and a real library."""

from __future__ import annotations

import io
import math
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import following
import pytest
from following import nowhere
from gates import HeldBackend
from PIL import Image

from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.actions import painting
from seedgrid.web.actions.painting import PaintingActions
from seedgrid.web.serializers.form import FormPayload, RoundPayload
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageState, PageUpdate

ASKED = FormPayload(prompt="a red fox", seeds="5-8", steps="3", size="64x64")


class Painter(HeldBackend):
    """Makes no more than `num_steps` steps of a batch until it may make more."""

    def __init__(self) -> None:
        super().__init__(lambda _recipes, number: number <= self.num_steps)
        self.num_steps = math.inf


@pytest.fixture
def painter() -> Painter:
    return Painter()


@pytest.fixture
def backend(painter: Painter) -> Painter:
    return painter


@pytest.fixture
def handlers(services: PageServices) -> PaintingActions:
    return services.handlers


def follow(handlers: PaintingActions, shown: PageUpdate) -> list[PageUpdate]:
    return following.follow(handlers, shown.state)


def grid(handlers: PaintingActions, asked: FormPayload = ASKED) -> tuple[PageState, PageUpdate]:
    """Generate and wait; return the place and the last news."""
    shown = handlers.on_generate(asked, nowhere())
    return shown.state, follow(handlers, shown)[-1]


def mask_of(grey: int, side_px: int = 64) -> str:
    """Return a mask of one tone as the page sends it."""
    file = io.BytesIO()
    Image.new("L", (side_px, side_px), grey).save(file, "PNG")
    return b64encode(file.getvalue()).decode()


def refine(
    handlers: PaintingActions, place: PageState, picture_id: str
) -> tuple[PageUpdate, PageUpdate]:
    shown = handlers.on_refine(RoundPayload(vary=GUIDE_SUFFIXES), place.move(picked=picture_id))
    return shown, follow(handlers, shown)[-1]


@pytest.mark.parametrize(
    ("only", "code"),
    [
        ("no base64", "error_start_unreadable"),
        (mask_of(0), "error_mask_empty"),
        (mask_of(255, 2049), "error_picture_large"),
    ],
)
def test_a_mask_that_means_nothing_is_said(handlers: PaintingActions, only: str, code: str) -> None:
    place, shown = grid(handlers)
    place = place.move(picked=shown.stage["cells"][0]["id"])
    around = RoundPayload(vary=GUIDE_SUFFIXES, only=only)
    status = handlers.on_refine(around, place).status
    assert status["key"] == code


def test_a_network_is_named_never_a_path(handlers: PaintingActions, tmp_path: Path) -> None:
    """A visitor's page cannot make the server read a file that its owner did not put there."""
    place, news = grid(handlers)
    here = place.move(picked=news.stage["cells"][0]["id"])
    (tmp_path / "foxes.safetensors").write_bytes(b"")
    for named in (str(tmp_path / "foxes.safetensors"), "../foxes", "foxes"):
        shown = handlers.on_final(2, RoundPayload(upscaler=named), here)
        assert (shown.status["key"], shown.state) == ("error_upscaler_missing", None)


def test_one_can_go_away_from_a_run_and_come_back(
    handlers: PaintingActions, painter: Painter
) -> None:
    """While a refinement forms, the rail shows it, Back leaves it, a click returns to it."""
    place, news = grid(handlers)
    picked = {"picked": news.stage["cells"][0]["id"]}
    painter.num_steps = 0
    forming = handlers.on_refine(RoundPayload(vary=GUIDE_SUFFIXES), place.move(**picked))
    first, second = forming.rail["rounds"]
    assert (second["parent"], second["lane"]) == (first["id"], 0)
    assert [cell["id"] for cell in second["cells"]] == [None] * 4
    away = handlers.on_back(forming.state)
    assert away.stage["busy"] is True
    assert [cell["state"] for cell in away.stage["cells"]] == ["done"] * 4
    again = handlers.on_go(second["id"], away.state)
    painter.num_steps = math.inf
    assert follow(handlers, again)[-1].stage["cells"][0]["state"] == "done"


def test_stop_keeps_what_is_done_and_leaves_others_alone(
    handlers: PaintingActions, painter: Painter
) -> None:
    """Two visitors: one stops, the other's pictures are finished."""
    painter.num_steps = 0
    mine = handlers.on_generate(ASKED, nowhere())
    yours = handlers.on_generate(ASKED, nowhere())
    handlers.on_stop(mine.state)
    painter.num_steps = math.inf
    stopped, done = follow(handlers, mine)[-1], follow(handlers, yours)[-1]
    assert {cell["state"] for cell in stopped.stage["cells"]} == {"stopped"}
    assert (stopped.status["key"], stopped.stage["busy"]) == ("status_cancelled_early", False)
    assert stopped.rail["rounds"] == []
    assert {cell["state"] for cell in done.stage["cells"]} == {"done"}


def test_the_position_in_the_queue_is_shown(handlers: PaintingActions, painter: Painter) -> None:
    """The third visitor's click is answered with how many are before, and the stream says it."""
    painter.num_steps = 0
    third = [handlers.on_generate(ASKED, nowhere()) for _ in range(3)][-1]
    news = following.follow(handlers, third.state, enough=lambda _: True)
    for told in (third, *news):
        assert (told.status["key"], told.status["data"]) == ("status_queued", {"number": 1})
    painter.num_steps = math.inf


def test_only_known_pictures_are_waited_for(
    handlers: PaintingActions, painter: Painter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A click that has to be painted is answered although another run is painted before it."""
    monkeypatch.setattr(painting, "_AT_ONCE_S", 1e6)
    painter.num_steps = 0
    first = handlers.on_generate(ASKED, nowhere())
    with ThreadPoolExecutor(1) as clicks:
        click = clicks.submit(handlers.on_generate, ASKED, nowhere())
        try:
            second = click.result(60)
        finally:  # Ends the click too.
            painter.num_steps = math.inf
    assert [cell["state"] for cell in second.stage["cells"]] == ["waiting"] * 4
    handlers.on_stop(first.state)


def test_the_device_that_was_chosen_is_used(
    handlers: PaintingActions, painter: FakeBackend
) -> None:
    """Generate and Refine compute where the settings say."""
    asked = FormPayload(**(vars(ASKED) | {"device": "cuda:1"}))
    place, news = grid(handlers, asked)
    picked = {"picked": news.stage["cells"][0]["id"]}
    on_cpu = RoundPayload(vary=GUIDE_SUFFIXES, device="cpu")
    follow(handlers, handlers.on_refine(on_cpu, place.move(**picked)))
    assert [call.placement.device for call in painter.calls] == ["cuda:1", "cpu"]


def test_a_round_has_an_address_and_so_has_a_picture(handlers: PaintingActions) -> None:
    """Another browser finds the round, or the picture picked in it, and the added words."""
    first, news = grid(handlers)
    parent = news.stage["cells"][2]["id"]
    second, later = refine(handlers, first, parent)
    child = later.stage["cells"][1]["id"]
    round_ = second.state.round
    assert round_ is not None
    shown = handlers.on_load(nowhere(), place=round_)
    assert shown.place["fields"]["vary"] == list(GUIDE_SUFFIXES)
    assert (shown.state.round, shown.state.picked) == (round_, parent)
    shown = handlers.on_load(nowhere(), place=child)
    assert (shown.state.round, shown.state.picked) == (round_, child)
    assert shown.stage["picked"] == 1
    shown = handlers.on_load(shown.state, place=first.round)
    assert (shown.state.round, shown.state.picked) == (first.round, parent)


@pytest.mark.parametrize("said", [{"place": "0" * 32}, {"start": True}])
def test_an_unknown_place_is_the_page_before_the_first_grid(
    handlers: PaintingActions, said: dict[str, Any]
) -> None:
    """What somebody else's library holds is not here, and is said so."""
    first, _ = grid(handlers)
    shown = handlers.on_load(first, **said)
    assert shown.state.round is None
    assert shown.status["key"] == ("place_unknown" if "place" in said else None)
