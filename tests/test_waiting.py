"""Waiting holds no thread, only an owner stops a run, and an address is what the server saw."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from gradio_client import Client, handle_file
from serving import serve

from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.serializers.form import FormPayload
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageState

SOON_S = 120.0
MANY = 100
"""More than the server has threads for events."""


@pytest.mark.sweep
def test_many_calls_that_wait_leave_threads_for_a_click(tmp_path: Path) -> None:
    """With 90 callers of /grid nobody's click was answered any more; none of them gets on here."""
    with serve(tmp_path / "library") as address, httpx.Client(timeout=SOON_S) as caller:
        client = Client(address, verbose=False)
        pictures, _ = client.predict("a red fox", "1", steps="1", api_name="/grid")
        body = {"prompt": "a fox that is held", "steps": 1}
        for _ in range(MANY):
            answer = caller.post(f"{address}gradio_api/call/v2/grid", json=body)
            assert answer.status_code == 200
        job = client.submit(handle_file(pictures[0]), api_name="/recipe")
        assert job.result(timeout=SOON_S)["recipe"]["prompt"] == "a red fox"


def test_a_run_is_stopped_by_its_owner_only(
    backend: FakeBackend, studio: Studio, services: PageServices
) -> None:
    """Who was sent the page of another may watch a run and not end it."""
    backend._step_delay_s = 0.02
    me = PageState(visitor="a" * 32)
    asked = FormPayload(prompt="a red fox", seeds="5", steps="100", size="64x64")
    shown = services.handlers.on_generate(asked, me)
    run = studio.engine.run(shown.state.run or "")
    services.handlers.on_stop(shown.state.model_copy(update={"visitor": "b" * 32}))
    assert not run.cancelled
    services.handlers.on_stop(shown.state)
    assert run.cancelled


def test_a_check_is_stopped_like_a_run(
    backend: FakeBackend, studio: Studio, services: PageServices
) -> None:
    """Stop ends what is verified, and another visitor's stop does not."""
    me, other = (PageState(visitor=letter * 32) for letter in "ab")
    (picture,) = studio.grid("a fox", 1, num_inference_steps=150, width=64, height=64)
    backend._step_delay_s = 0.05
    handlers = services.handlers

    async def verify() -> list[object]:
        said = []
        async for news in handlers.on_verify(picture.id, me):
            said.append(news.verdict)
            handlers.on_stop(other)
            if len(said) == 3:
                handlers.on_stop(me)
        return said

    last = asyncio.run(asyncio.wait_for(verify(), SOON_S))[-1]
    assert isinstance(last, dict)
    assert last["error"]["key"] == "error_run_cancelled"
