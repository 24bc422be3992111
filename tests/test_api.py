"""The API as programs use it: how it goes while it goes, how it is stopped, what documents it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import numpy as np
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from pictures import saved_again
from PIL import Image
from reports import report_for
from serving import serve

from seedgrid.core.errors import Notice
from seedgrid.core.fields import FIELDS
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.probe_results import record_width
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.library.visitor_libraries import VisitorLibraries
from seedgrid.studio import Studio
from seedgrid.testing.fake import FAKE_CARD, FakeBackend
from seedgrid.web.api import GRID_FIELDS, Api, default_of
from seedgrid.web.server.routes import PageServices

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
def library(folder: Path, client: Client) -> Library:
    client.predict("the first", "1", steps=1, api_name="/grid")
    return Library(folder)


def prompts(library: Library) -> list[str]:
    """Return the prompts of all pictures that are there."""
    return [entry.recipe.prompt for entry in library.search(limit=200).entries]


def test_grid_and_refine_give_the_very_files(client: Client, library: Library) -> None:
    """PNGs byte for byte as in the library, recipes inside; a refinement keeps the seed."""
    pictures, records = client.predict("a red fox", "3, 9", api_name="/grid")
    for picture, record, seed in zip(pictures, records, (3, 9), strict=True):
        given = Path(picture).read_bytes()
        assert given == library.get(record["id"]).path.read_bytes()
        assert png.read(given).recipe.seed == record["seed"] == seed
    _, varied = client.predict(records[0]["id"], [", artsy"], api_name="/refine")
    assert [(r["seed"], r["prompt"]) for r in varied] == [(3, "a red fox, artsy")]


def test_recipe_and_verify_read_a_file(client: Client, tmp_path: Path) -> None:
    """What it holds, and whether it is identical; one with a changed pixel is not."""
    (picture,), records = client.predict("a red fox", "1", api_name="/grid")
    record = client.predict(handle_file(picture), api_name="/recipe")
    assert record["recipe"] == records[0]["recipe"]
    assert client.predict(handle_file(picture), api_name="/verify")["verdict"] == "identical"
    edited = saved_again(Path(picture).read_bytes(), pixel=(1, 2, 3))
    (tmp_path / "edited.png").write_bytes(edited)
    edited = client.predict(handle_file(str(tmp_path / "edited.png")), api_name="/verify")
    assert (edited["verdict"], edited["differing_pixels"]) == ("altered", 1)


def test_grid_takes_every_field_that_makes_a_picture(client: Client, address: str) -> None:
    """In the table's names, those of old first; the prompt names LoRAs, no grid is enlarged.

    Gradio's own description and OpenAPI document say of which kind each is.
    """
    named = httpx.get(f"{address}gradio_api/info").json()["named_endpoints"]
    assert set(named) == {"/grid", "/refine", "/recipe", "/verify"}
    told = {each["parameter_name"]: each for each in named["/grid"]["parameters"]}
    assert list(told) == [row.name for row in GRID_FIELDS]
    always = ["prompt", "seeds", "negative", "steps", "guidance", "size", "scheduler", "model"]
    assert list(told)[:8] == always
    rows = {row.name for row in FIELDS if row.scope == "recipe"}
    assert set(told) == rows - {"lora", "typed", "upscaler"}
    assert {"type": "integer"} in told["steps"]["type"]["oneOf"]
    assert [name for name, each in told.items() if not each["parameter_has_default"]] == ["prompt"]
    document = httpx.get(f"{address}gradio_api/openapi.json").json()
    assert "/gradio_api/call/v2/grid" in document["paths"]
    _, records = client.predict("a fox", "1", width="2", determinism="off", api_name="/grid")
    recipe = records[0]["recipe"]
    assert (recipe["lock_width"], recipe["determinism"]) == (2, "off")
    with pytest.raises(AppError, match="width"):
        client.predict("a fox", "1", width="three", api_name="/grid")


def test_narrower_batches_are_said(client: Client) -> None:
    """Where the lock was found to leak, the width is another one, and whoever asked is told.

    The cache of what was found is the whole session's: no other test paints in float16.
    """
    recipe = resolve(Request(prompt="a fox", dtype="float16"), FAKE_CARD)[0]
    record_width(recipe, report_for(recipe, tested=2))
    _, records = client.predict("a fox", "1", dtype="float16", api_name="/grid")
    assert records[0]["recipe"]["lock_width"] == 2
    assert records[0]["notices"] == [str(Notice("width_lowered", width=2, usual=4))]
    _, records = client.predict("a fox", "1", api_name="/grid")
    assert records[0]["notices"] == []


def test_analytics_and_history_are_off(address: str) -> None:
    """The page reports to nobody and keeps no prompts in the browser's run history."""
    config = httpx.get(f"{address}config").json()
    assert config["analytics_enabled"] is False
    assert config.get("run_history") in (False, None)
    for path in ("gradio_api/runs", "monitoring", "seedgrid/pictures/..%2F..%2Fetc%2Fpasswd.png"):
        assert httpx.get(f"{address}{path}").status_code == 404


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


def test_a_call_is_two_requests(address: str) -> None:
    """It can be begun and followed with nothing but HTTP."""
    begun = httpx.post(
        f"{address}gradio_api/call/v2/grid",
        json={"prompt": "by hand", "seeds": "5", "steps": 1},
        timeout=SOON_S,
    ).json()
    events = httpx.get(f"{address}gradio_api/call/grid/{begun['event_id']}", timeout=SOON_S).text
    kind, last = events.strip().split("\n\n")[-1].split("\ndata: ")
    assert kind == "event: complete"
    (_, records) = json.loads(last)
    assert records[0]["recipe"]["prompt"] == "by hand"


@pytest.mark.parametrize("told", [{"steps": "many"}, {"seeds": [1]}, {"prompt": {"words": "x"}}])
def test_what_cannot_be_is_said_in_a_sentence(client: Client, told: dict[str, Any]) -> None:
    """Another kind of value is no error of the server's."""
    with pytest.raises(AppError, match=r"steps|“seeds” takes str / null, not \[1\]|prompt"):
        client.predict(**({"prompt": "a fox"} | told), api_name="/grid")


def test_what_programs_paint_is_bounded_like_visitors_pictures(tmp_path: Path) -> None:
    """Pictures of the API once lay on a public page's disk for ever, any number of them."""
    libraries = VisitorLibraries(tmp_path / "visitors", max_bytes=100)

    async def grid(api: Api) -> list[dict[str, Any]]:
        told = {"prompt": "a fox", "seeds": "1", "size": "64x64", "steps": 1}
        values = [told.get(row.name, default_of(row)) for row in GRID_FIELDS]
        answers = [each async for each in api.grid(*values, None)]
        return answers[-1][1]

    with Studio(library=tmp_path / "own", backend=FakeBackend()) as studio:
        api = Api(PageServices(studio, libraries), tmp_path / "copies")
        (record,) = asyncio.run(grid(api))
        (folder,) = (tmp_path / "visitors").glob("programs-*")
        assert libraries.of(folder.name).file_of(record["id"])
        with pytest.raises(gr.Error, match="visitors"):
            asyncio.run(grid(api))
    assert not list((tmp_path / "own").glob("objects/*"))


def test_a_region_is_painted_by_a_call(client: Client, library: Library, tmp_path: Path) -> None:
    """The mask is a file; around it no pixel changes, and a hold stands in the recipe."""
    Image.fromarray(np.eye(64, dtype=np.uint8) * 255).save(tmp_path / "mask.png")
    _, (parent,) = client.predict("a fox", "5", steps=5, size="64x64", api_name="/grid")
    how = {"hold": 0.4, "only": handle_file(tmp_path / "mask.png"), "feather": 0}
    _, (record,) = client.predict(parent["id"], [", neon"], **how, api_name="/refine")
    with pytest.raises(AppError, match="from 0 to"):
        client.predict(parent["id"], hold=10**400, api_name="/refine")
    recipe = record["recipe"]
    assert (recipe["held_steps"], recipe["parent"]) == (2, parent["recipe"])
    before, after = (
        np.asarray(library.get(each["id"]).image).astype(int) for each in (parent, record)
    )
    inside = np.eye(64, dtype=bool)
    np.testing.assert_array_equal(after[~inside], before[~inside])
    assert np.any(after[inside] != before[inside])
    with pytest.raises(AppError, match=r"from 0 to 0\.8"):
        client.predict(parent["id"], [", neon"], hold=0.9, api_name="/refine")
