"""How a run goes, as the page hears of it: a stream of news, each told once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from following import nowhere
from gates import GatedBackend
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from seedgrid.studio import Studio
from seedgrid.web.serializers.form import FormPayload
from seedgrid.web.server.routes import PageServices, lines
from seedgrid.web.state.page_state import PageState, PageUpdate

ASKED = FormPayload(prompt="a red fox", seeds="5-8", steps="3", size="64x64")


@pytest.fixture
def backend() -> GatedBackend:
    return GatedBackend(step_delay_s=0.05)


def told(answer: str) -> list[dict[str, Any]]:
    """The news of a stream, without its heartbeats."""
    blocks = [block for block in answer.split("\n\n") if block.startswith("data: ")]
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def test_the_stream_tells_a_run_to_its_end(studio: Studio, backend: GatedBackend) -> None:
    """Steps with previews, then four pictures, then that it is done; the rail when it changes."""
    backend.may_go.clear()
    services = PageServices(studio)
    place = services.handlers.on_generate(ASKED, nowhere()).state

    async def follow(state: PageState) -> AsyncGenerator[PageUpdate, None]:
        async for news in services.handlers.follow(state):
            yield news
            backend.may_go.set()  # The first ones were told.

    async def answer_to(_: object) -> Response:
        return StreamingResponse(lines(follow(place)), media_type="text/event-stream")

    app = Starlette(routes=[Route("/follow", answer_to, methods=["POST"])])
    with TestClient(app) as client:
        answer = client.post("/follow", json={})
    news = told(answer.text)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert any("preview" in cell for each in news for cell in each["stage"]["cells"])
    assert [cell["state"] for cell in news[-1]["stage"]["cells"]] == ["done"] * 4
    assert news[-1]["status"]["key"] == "status_done"
    assert {each["stage"]["epoch"] for each in news} == {place.epoch}
    assert 1 <= sum("rail" in each for each in news) < len(news)


def test_a_stream_holds_no_thread(studio: Studio, backend: GatedBackend) -> None:
    """Each listener once held one that slept: a hundred of them, a hundred threads."""
    backend.may_go.clear()
    services, before = PageServices(studio), threading.active_count()
    place = services.handlers.on_generate(ASKED, nowhere()).state

    async def listen() -> int:
        listeners = [services.handlers.follow(place) for _ in range(60)]
        for news in listeners:
            await anext(news)
        hearing = [asyncio.ensure_future(anext(news)) for news in listeners]
        await asyncio.sleep(0.2)
        num_threads = threading.active_count()
        backend.may_go.set()
        await asyncio.gather(*hearing)
        for news in listeners:
            await news.aclose()
        return num_threads

    # A busy machine uses all 40 threads that do work of any kind, and the engine's own.
    assert anyio.run(listen) < before + 60


def written(*news: PageUpdate) -> list[str]:
    """What is written of news, one after the other."""

    async def tell() -> AsyncGenerator[PageUpdate, None]:
        for each in news:
            yield each

    async def write() -> list[str]:
        return [line async for line in lines(tell())]

    return anyio.run(write)


def test_what_was_told_is_not_told_again() -> None:
    """The rail is a look into the library and stays the same for most steps."""
    rail = {"rounds": []}
    first = PageUpdate(stage={"epoch": 1}, status={"key": "a"}, rail=rail)
    then = PageUpdate(stage={"epoch": 1}, status={"key": "b"}, rail=rail)
    parts = [set(each) for each in told("".join(written(first, then)))]
    assert parts == [{"stage", "status", "rail"}, {"stage", "status"}]
