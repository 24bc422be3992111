"""The API as programs use it: how it goes while it goes, how it is stopped, what documents it.

And the same four functions as tools, driven by the client of the `mcp` package.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from mcp.client.client import Client as Agent
from mcp.shared.exceptions import MCPError
from serving import ROOT, serve

from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.api import Api
from seedgrid.web.calls import CALLS, GRID_FIELDS, default_of
from seedgrid.web.server.file_work import FileWork
from seedgrid.web.state.visitor_libraries import VisitorLibraries

SOON_S = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The page with a painter that takes 0.03 s a step."""
    with serve(folder, step_delay_s=0.03) as address:
        yield address


@pytest.fixture(scope="module")
def client(address: str) -> Client:
    return Client(address, verbose=False)


@pytest.fixture(scope="module")
def library(folder: Path, client: Client) -> Iterator[Library]:
    client.predict("the first", "1", steps=1, api_name="/grid")
    with Library(folder) as library:
        yield library


def prompts(library: Library) -> list[str]:
    """Return the prompts of all pictures that are there."""
    return [entry.recipe.prompt for entry in library.search(limit=200).entries]


def test_pictures_come_as_they_are_finished(client: Client) -> None:
    """Who iterates over a job has the first batch while the second is painted."""
    job = client.submit("a herd", "0-7", steps=4, size="64x64", api_name="/grid")
    counts = [len(records) for _, records in job]
    assert counts[-1] == 8
    assert counts == sorted(counts)
    assert counts[0] < 8
    pictures, records = job.result()
    assert [record["seed"] for record in records] == list(range(8))
    assert len(pictures) == 8


def test_a_picture_that_comes_to_nothing_costs_the_others_nothing(client: Client) -> None:
    """Who waits for the end had an error in place of three good pictures."""
    asked = {"steps": 3, "size": "64x64", "api_name": "/grid"}
    pictures, records = client.predict("a spoilt fox", "4-7", **asked)
    assert [record["seed"] for record in records] == [4, 5, 6]
    assert len(pictures) == 3
    told = [each for record in records for each in record["notices"] if "NaN" in each]
    assert len(told) == 3
    assert all(each.startswith("Seed 7 gave no picture: ") for each in told)
    with pytest.raises(AppError, match="NaN"):
        client.predict("a spoilt fox", "8", **asked)


def test_steps_are_told_on_the_way(client: Client) -> None:
    """A job's status says which step of how many, and never goes back."""
    job = client.submit("a slow herd", "0-3", steps=60, size="64x64", api_name="/grid")
    seen = []
    while not job.done():
        seen += [(unit.progress, unit.desc) for unit in job.status().progress_data or ()]
        time.sleep(0.05)
    assert any("of 60" in words for _, words in seen)
    assert [part for part, _ in seen] == sorted(part for part, _ in seen)


def test_a_job_that_is_cancelled_stops_its_run(client: Client, library: Library) -> None:
    """Cancelled calls went on painting for nobody; the next call waited behind them."""
    job = client.submit("nobody's", "0-15", steps=150, size="64x64", api_name="/grid")
    while not any("step" in (unit.desc or "") for unit in job.status().progress_data or ()):
        time.sleep(0.05)
    job.cancel()
    client.predict("somebody's", "1", steps=1, size="64x64", api_name="/grid")
    assert "somebody's" in prompts(library)
    assert "nobody's" not in prompts(library)


def test_a_number_may_be_a_text(client: Client) -> None:
    """Programs from before the types were said go on."""
    for steps in (2, "2"):
        _, records = client.predict("a fox", "1", steps=steps, guidance="3.5", api_name="/grid")
        assert records[0]["recipe"]["num_inference_steps"] == 2
        assert records[0]["recipe"]["guidance_scale"] == 3.5


def test_the_api_says_of_which_kind_each_parameter_is(address: str) -> None:
    """Gradio's own description and our OpenAPI document both come from the table of fields."""
    grid = httpx.get(f"{address}gradio_api/info").json()["named_endpoints"]["/grid"]
    told = {each["parameter_name"]: each for each in grid["parameters"]}
    assert list(told) == [row.name for row in GRID_FIELDS]
    assert told["steps"]["type"] == {"type": "integer"}
    assert [name for name, each in told.items() if not each["parameter_has_default"]] == ["prompt"]
    document = httpx.get(f"{address}seedgrid/openapi.json").json()
    properties = document["components"]["schemas"]["GridCall"]["properties"]
    assert set(properties) == set(told)
    assert {"type": "integer"} in properties["steps"]["anyOf"]


def test_the_document_is_what_is_served(address: str) -> None:
    """Every call in it can be begun and followed as it says, with nothing but HTTP."""
    document = httpx.get(f"{address}seedgrid/openapi.json").json()
    assert {path for path in document["paths"] if "/v2/" in path} == {
        f"/gradio_api/call/v2/{call.name}" for call in CALLS
    }
    begun = httpx.post(
        f"{address}gradio_api/call/v2/grid",
        json={"prompt": "by hand", "seeds": "5", "steps": 1},
        timeout=SOON_S,
    ).json()
    events = httpx.get(f"{address}gradio_api/call/grid/{begun['event_id']}", timeout=SOON_S).text
    _, last = events.strip().split("\n\n")[-1].split("\ndata: ")
    (_, records) = json.loads(last)
    assert events.strip().split("\n\n")[-1].startswith("event: complete")
    assert set(records[0]) == set(document["components"]["schemas"]["PictureRecord"]["properties"])


def test_the_page_of_the_api_runs_no_script(address: str) -> None:
    """It names every parameter, loads nothing, and may not run anything."""
    answer = httpx.get(f"{address}seedgrid/api")
    assert answer.status_code == 200
    assert all(f"<code>{row.name}</code>" in answer.text for row in GRID_FIELDS)
    assert "<script" not in answer.text
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def tool(answer: Any) -> dict[str, Any]:
    """Return what a tool answered, as data."""
    assert not answer.is_error, answer.content
    return answer.structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_agent_paints_and_refines(address: str, mode: str) -> None:
    """It sees four pictures, picks one, varies its words on its seed, and verifies the file."""

    async def work() -> None:
        heard: list[tuple[float, float | None]] = []

        async def on_progress(part: float, total: float | None, _: str | None) -> None:
            heard.append((part, total))

        async with Agent(f"{address}gradio_api/mcp", mode=mode) as agent:
            tools = {each.name: each for each in (await agent.list_tools()).tools}
            assert set(tools) == {call.name for call in CALLS}
            told = {"prompt": f"a fox, {mode}", "seeds": "3-6", "steps": 3, "size": "64x64"}
            answer = await agent.call_tool("grid", told, progress_callback=on_progress)
            pictures = tool(answer)["pictures"]
            assert [each["seed"] for each in pictures] == [3, 4, 5, 6]
            assert [part.type for part in answer.content] == ["image"] * 4 + ["text"]
            refined = await agent.call_tool(
                "refine", {"picture_id": pictures[2]["id"], "vary": [", artsy"]}
            )
            (varied,) = tool(refined)["pictures"]
            assert (varied["seed"], varied["prompt"]) == (5, f"a fox, {mode}, artsy")
            file = httpx.get(varied["url"]).content
            assert png.read(file).recipe.id == varied["recipe_id"]
            sent = "data:image/png;base64," + base64.b64encode(file).decode()
            for name in (varied["id"], sent):
                verdict = tool(await agent.call_tool("verify", {"picture": name}))
                assert verdict["verdict"] == "identical"
                record = tool(await agent.call_tool("recipe", {"picture": name}))
                assert record["recipe_id"] == varied["recipe_id"]
        assert heard
        assert heard == sorted(heard)
        assert {total for _, total in heard} == {4}

    asyncio.run(asyncio.wait_for(work(), SOON_S))


def test_an_agent_is_shown_what_came_out_and_told_of_the_rest(address: str) -> None:
    """One picture without numbers takes nothing from the others."""

    async def work() -> dict[str, Any]:
        async with Agent(f"{address}gradio_api/mcp") as agent:
            told = {"prompt": "a spoilt hare", "seeds": "4-7", "steps": 2, "size": "64x64"}
            return tool(await agent.call_tool("grid", told))

    pictures = asyncio.run(asyncio.wait_for(work(), SOON_S))["pictures"]
    assert [each["seed"] for each in pictures] == [4, 5, 6]
    assert "Seed 7 gave no picture" in pictures[0]["notices"][-1]


def test_an_agent_hears_what_cannot_be(address: str) -> None:
    """A wrong argument is a sentence, not a broken connection; no address is ever fetched."""

    async def work() -> list[str]:
        async with Agent(f"{address}gradio_api/mcp") as agent:
            asked: list[tuple[str, dict[str, Any]]] = [
                ("grid", {"prompt": ""}),
                ("grid", {"prompt": "a fox", "steps": "many"}),
                ("grid", {"prompt": "a fox", "stepps": 3}),
                ("refine", {"picture_id": "0" * 32}),
                ("verify", {"picture": "http://127.0.0.1:1/x.png"}),
                ("recipe", {"picture": "/etc/passwd"}),
                ("recipe", {"picture": "data:image/png;base64,AAAA"}),
            ]
            answers = [await agent.call_tool(name, told) for name, told in asked]
        assert all(answer.is_error for answer in answers)
        return [answer.content[0].text for answer in answers]

    said = asyncio.run(asyncio.wait_for(work(), SOON_S))
    assert said[0].startswith("The prompt is empty")
    assert "steps" in said[1]
    assert "stepps" in said[2]


def test_an_agent_that_goes_stops_its_run(address: str, client: Client, library: Library) -> None:
    """What nobody waits for is not painted, and nobody's call waits behind it."""

    async def work() -> None:
        is_painting = asyncio.Event()

        async def on_progress(part: float, *_: object) -> None:
            if part > 0:
                is_painting.set()

        async with Agent(f"{address}gradio_api/mcp") as agent:
            told = {"prompt": "an agent's", "seeds": "0-15", "steps": 150, "size": "64x64"}
            call = asyncio.create_task(agent.call_tool("grid", told, progress_callback=on_progress))
            await is_painting.wait()
            call.cancel()
            with pytest.raises((asyncio.CancelledError, MCPError)):
                await call

    asyncio.run(asyncio.wait_for(work(), SOON_S))
    client.predict("the next", "1", steps=1, size="64x64", api_name="/grid")
    assert "the next" in prompts(library)
    assert "an agent's" not in prompts(library)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_another_site_cannot_use_the_tools(
    address: str, headers: dict[str, str], status: int
) -> None:
    """A page of another site reaches no tool: neither by a name of its own nor by a request."""
    answer = httpx.post(f"{address}gradio_api/mcp", json={}, headers=headers)
    assert answer.status_code == status


def test_no_agent_holds_what_others_need(address: str) -> None:
    """There were two hundred sessions for all, and one who began so many shut the others out."""
    told = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{address}gradio_api/mcp", json=begin, headers=headers)
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers


def test_agents_are_bounded_by_their_address(tmp_path: Path) -> None:
    """On a public page a new session is no new allowance."""
    with serve(
        tmp_path, step_delay_s=0.2, public={"SEEDGRID_MAX_RUNS_PER_ADDRESS": "1"}
    ) as address:
        told = {"prompt": "a fox", "seeds": "0-3", "steps": 150, "size": "64x64"}

        async def work() -> str:
            started = asyncio.Event()

            async def on_progress(part: float, *_: object) -> None:
                if part > 0:
                    started.set()

            mcp = f"{address}gradio_api/mcp"
            async with Agent(mcp) as one, Agent(mcp) as other:
                call = asyncio.create_task(
                    one.call_tool("grid", told, progress_callback=on_progress)
                )
                await started.wait()
                refused = await other.call_tool("grid", told)
                call.cancel()
                with pytest.raises((asyncio.CancelledError, MCPError)):
                    await call
            assert refused.is_error
            return refused.content[0].text

        assert "1" in asyncio.run(asyncio.wait_for(work(), SOON_S))


def test_what_programs_paint_is_bounded_like_visitors_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures of the API once lay on a public page's disk for ever, any number of them."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "cache"))
    libraries = VisitorLibraries(tmp_path / "visitors", max_bytes=100)

    async def grid(api: Api) -> list[dict[str, Any]]:
        told = {"prompt": "a fox", "seeds": "1", "size": "64x64", "steps": 1}
        values = [told.get(row.name, default_of(row)) for row in GRID_FIELDS]
        answers = [each async for each in api.grid()(*values, None, lambda *_, **__: None)]
        return answers[-1][1]

    with Studio(library=tmp_path / "own", backend=FakeBackend()) as studio:
        api = Api(studio, libraries, FileWork())
        (record,) = asyncio.run(grid(api))
        assert libraries.file_of(record["id"])
        with pytest.raises(gr.Error, match="visitors"):
            asyncio.run(grid(api))
    assert not list((tmp_path / "own").glob("objects/*"))


def test_the_page_opens_without_the_tools() -> None:
    """The package of the tools is imported when an agent comes, not with the page."""
    code = (
        "import sys; from seedgrid.diffusion.process import tune_process; tune_process();"
        " import seedgrid.web.launch; print('mcp' in sys.modules); import mcp"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
