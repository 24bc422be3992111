"""The page's answers: values in, values out, on the fake backend and a real library."""

from __future__ import annotations

import io
import math
from base64 import b64encode
from pathlib import Path
from typing import Any

import following
import pytest
from gates import HeldBackend
from PIL import Image

from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.serializers.form import FormPayload, RoundPayload
from seedgrid.web.server.routes import Answers
from seedgrid.web.state.page_state import PageUpdate

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
def handlers(answers: Answers) -> Handlers:
    return answers.handlers


def kept(shown: PageUpdate) -> dict[str, Any]:
    return shown.state.model_dump(mode="json")


def follow(handlers: Handlers, shown: PageUpdate) -> list[PageUpdate]:
    return following.follow(handlers, kept(shown))


def is_painting(news: PageUpdate) -> bool:
    return bool(news.stage["cells"][0]["state"] == "painting")


def grid(handlers: Handlers, asked: FormPayload = ASKED) -> tuple[dict[str, Any], PageUpdate]:
    """Generate and wait; return the place and the last news."""
    shown = handlers.on_generate(asked, {})
    return kept(shown), follow(handlers, shown)[-1]


def mask_of(grey: int) -> str:
    """Return a mask of one tone as the page sends it."""
    file = io.BytesIO()
    Image.new("RGB", (64, 64), (grey,) * 3).save(file, "PNG")
    return b64encode(file.getvalue()).decode()


def refine(
    handlers: Handlers, place: dict[str, Any], picture_id: str
) -> tuple[PageUpdate, PageUpdate]:
    shown = handlers.on_refine(RoundPayload(vary=GUIDE_SUFFIXES), place | {"picked": picture_id})
    return shown, follow(handlers, shown)[-1]


def test_generate_fills_the_stage_with_the_seeds_asked_for(handlers: Handlers) -> None:
    """Four cells, each with the seed that made it and a picture of its own."""
    _, news = grid(handlers)
    cells = news.stage["cells"]
    assert [cell["seed"] for cell in cells] == [5, 6, 7, 8]
    assert {cell["state"] for cell in cells} == {"done"}
    assert len({cell["id"] for cell in cells}) == 4
    assert (news.stage["busy"], news.status["key"]) == (False, "status_done")


def test_previews_are_small_pictures_for_every_cell(handlers: Handlers, painter: Painter) -> None:
    """While a run goes on, each cell has a step and a JPEG of its own."""
    painter.num_steps = 0
    forming: list[list[dict[str, Any]]] = []

    def look(news: PageUpdate) -> None:
        if is_painting(news):
            forming.append(news.stage["cells"])
            painter.num_steps += 1

    following.follow(handlers, kept(handlers.on_generate(ASKED, {})), look)
    assert len(forming) >= 2
    for cells in forming:
        previews = [cell["preview"] for cell in cells]
        assert all(uri.startswith("data:image/jpeg;base64,") for uri in previews)
        assert len(set(previews)) == 4
        assert max(map(len, previews)) < 40_000


def test_refine_keeps_the_seed_and_shows_the_parent(handlers: Handlers) -> None:
    """All four variations carry the picked picture's seed; the card shows the parent."""
    place, news = grid(handlers)
    picked = news.stage["cells"][2]
    shown, news = refine(handlers, place, picked["id"])
    assert [cell["seed"] for cell in news.stage["cells"]] == [7, 7, 7, 7]
    assert [cell["words"] for cell in news.stage["cells"]] == [
        suffix.removeprefix(", ") for suffix in GUIDE_SUFFIXES
    ]
    assert (shown.picked["id"], shown.picked["hint"]) == (picked["id"], "card_parent")


@pytest.mark.parametrize(
    ("only", "code"),
    [
        ("no base64", "error_start_unreadable"),
        (mask_of(0), "error_mask_empty"),
    ],
)
def test_a_mask_that_means_nothing_is_said(handlers: Handlers, only: str, code: str) -> None:
    place, shown = grid(handlers)
    place |= {"picked": shown.stage["cells"][0]["id"]}
    around = RoundPayload(vary=GUIDE_SUFFIXES, only=only)
    status = handlers.on_refine(around, place).status
    assert status["key"] == code


def test_after_four_refinements_back_leads_to_the_root(handlers: Handlers) -> None:
    """Back goes one round up each time, with the picture picked that was gone on from."""
    place, news = grid(handlers)
    gone_on_from = []
    for cell in (0, 1, 2, 3):
        gone_on_from.append(news.stage["cells"][cell]["id"])
        shown, news = refine(handlers, place, gone_on_from[-1])
        place = kept(shown)
    for expected in reversed(gone_on_from):
        shown = handlers.on_back(place)
        place = kept(shown)
        assert shown.picked["id"] == expected
        assert shown.stage["cells"][shown.stage["picked"]]["id"] == expected
    assert shown.rail["has_parent"] is False
    assert handlers.on_back(place) == PageUpdate()


def test_a_network_is_named_never_a_path(handlers: Handlers, tmp_path: Path) -> None:
    """A visitor's page cannot make the server read a file that its owner did not put there."""
    place, news = grid(handlers)
    here = place | {"picked": news.stage["cells"][0]["id"]}
    (tmp_path / "foxes.safetensors").write_bytes(b"")
    for named in (str(tmp_path / "foxes.safetensors"), "../foxes", "foxes"):
        shown = handlers.on_final(2, RoundPayload(upscaler=named), here)
        assert (shown.status["key"], shown.state) == ("error_upscaler_missing", None)


def test_one_can_go_away_from_a_run_and_come_back(handlers: Handlers, painter: Painter) -> None:
    """While a refinement forms, the rail shows it, Back leaves it, a click returns to it."""
    place, news = grid(handlers)
    picked = {"picked": news.stage["cells"][0]["id"]}
    painter.num_steps = 0
    forming = handlers.on_refine(RoundPayload(vary=GUIDE_SUFFIXES), place | picked)
    first, second = forming.rail["rounds"]
    assert (second["parent"], second["lane"]) == (first["id"], 0)
    assert [cell["id"] for cell in second["cells"]] == [None] * 4
    away = handlers.on_back(kept(forming))
    assert away.stage["busy"] is True
    assert [cell["state"] for cell in away.stage["cells"]] == ["done"] * 4
    again = handlers.on_go(second["id"], kept(away))
    painter.num_steps = math.inf
    assert follow(handlers, again)[-1].stage["cells"][0]["state"] == "done"


def test_a_reload_shows_the_same_place(handlers: Handlers) -> None:
    """What the browser kept is enough to show stage, rail and card again."""
    place, news = grid(handlers)
    again = handlers.on_load(place)
    assert [c["id"] for c in again.stage["cells"]] == [c["id"] for c in news.stage["cells"]]
    assert again.rail["rounds"] == news.rail["rounds"]


def test_a_reload_finds_the_run_that_goes_on(handlers: Handlers, painter: Painter) -> None:
    """A closed tab stops nothing; the next one watches the same run to its end."""
    painter.num_steps = 0
    place = kept(handlers.on_generate(ASKED, {}))
    reloaded = handlers.on_load(place)
    assert reloaded.stage["busy"] is True
    painter.num_steps = math.inf
    assert follow(handlers, reloaded)[-1].status["key"] == "status_done"
    assert len(painter.calls) == 1


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"seeds": "abc"}, "seed_text", "seeds"),
        ({"prompt": "   "}, "prompt_empty", "prompt"),
        ({"size": "big"}, "size_text", "size"),
        ({"steps": "0"}, "steps_range", "steps"),
        ({"scheduler": "Magic"}, "scheduler_unknown", "scheduler"),
        ({"model": "nope"}, "model_missing", "model"),
        ({"mix": "some of 7"}, "mix_text", "mix"),
    ],
)
def test_bad_input_is_named_at_its_field_and_loses_nothing(
    handlers: Handlers, painter: FakeBackend, changes: dict[str, str], code: str, field: str
) -> None:
    """The message names the field; stage, rail and place stay as they are; nothing is painted."""
    asked = FormPayload(**(vars(ASKED) | changes))
    shown = handlers.on_generate(asked, {})
    assert (shown.status["key"], shown.status["field"]) == (f"error_{code}", field)
    assert (shown.state, shown.stage, shown.rail) == (None, None, None)
    assert painter.calls == []


def test_stop_keeps_what_is_done_and_leaves_others_alone(
    handlers: Handlers, painter: Painter
) -> None:
    """Two visitors: one stops, the other's pictures are finished."""
    painter.num_steps = 0
    mine = handlers.on_generate(ASKED, {})
    yours = handlers.on_generate(ASKED, {})
    handlers.on_stop(kept(mine))
    painter.num_steps = math.inf
    stopped, done = follow(handlers, mine)[-1], follow(handlers, yours)[-1]
    assert {cell["state"] for cell in stopped.stage["cells"]} == {"stopped"}
    assert (stopped.status["key"], stopped.stage["busy"]) == ("status_cancelled_early", False)
    assert stopped.rail["rounds"] == []
    assert {cell["state"] for cell in done.stage["cells"]} == {"done"}


def test_the_position_in_the_queue_is_shown(handlers: Handlers, painter: Painter) -> None:
    """The third visitor hears how many are before."""
    painter.num_steps = 0
    runs = [handlers.on_generate(ASKED, {}) for _ in range(3)]
    (news,) = following.follow(handlers, kept(runs[-1]), enough=lambda _: True)
    assert (news.status["key"], news.status["data"]) == ("status_queued", {"number": 1})
    for run in runs:
        handlers.on_stop(kept(run))


def test_the_device_that_was_chosen_is_used(handlers: Handlers, painter: FakeBackend) -> None:
    """Generate and Refine compute where the settings say."""
    asked = FormPayload(**(vars(ASKED) | {"device": "cuda:1"}))
    place, news = grid(handlers, asked)
    picked = {"picked": news.stage["cells"][0]["id"]}
    on_cpu = RoundPayload(vary=GUIDE_SUFFIXES, device="cpu")
    follow(handlers, handlers.on_refine(on_cpu, place | picked))
    assert [call.placement.device for call in painter.calls] == ["cuda:1", "cpu"]


def test_a_round_has_an_address_and_so_has_a_picture(handlers: Handlers) -> None:
    """Another browser finds the round, or the picture picked in it, and the added words."""
    first, news = grid(handlers)
    parent = news.stage["cells"][2]["id"]
    second, later = refine(handlers, first, parent)
    child = later.stage["cells"][1]["id"]
    round_ = kept(second)["round"]
    assert round_ is not None
    shown = handlers.on_load({}, place=round_)
    assert shown.place["fields"]["vary"] == list(GUIDE_SUFFIXES)
    assert (kept(shown)["round"], kept(shown)["picked"]) == (round_, parent)
    shown = handlers.on_load({}, place=child)
    assert (kept(shown)["round"], kept(shown)["picked"]) == (round_, child)
    assert shown.stage["picked"] == 1
    shown = handlers.on_load(kept(shown), place=first["round"])
    assert (kept(shown)["round"], kept(shown)["picked"]) == (first["round"], parent)


@pytest.mark.parametrize("said", [{"place": "0" * 32}, {"start": True}])
def test_an_unknown_place_is_the_page_before_the_first_grid(
    handlers: Handlers, said: dict[str, Any]
) -> None:
    """What somebody else's library holds is not here, and is said so."""
    first, _ = grid(handlers)
    shown = handlers.on_load(first, **said)
    assert kept(shown)["round"] is None
    assert shown.status["key"] == ("place_unknown" if "place" in said else None)


def test_a_link_waits_for_a_click(handlers: Handlers) -> None:
    """Somebody else's link fills the fields in: nothing is painted before a hand says so."""
    shown = handlers.on_load({}, link="prompt=a+red+fox&seeds=5-8&steps=3&size=64x64")
    assert (shown.status["key"], shown.fields["prompt"]) == ("link_ready", "a red fox")
    assert kept(shown)["run"] is None
