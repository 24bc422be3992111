"""The served page without a browser: what is open, what is refused, what is private."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from reports import report_for
from serving import serve

import app
from seedgrid.core.errors import ModelError, Notice
from seedgrid.core.fields import FIELDS
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.deferred import InstalledBackend
from seedgrid.diffusion.probe_results import advise
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.models.shelf import bundled_folder
from seedgrid.studio import Studio
from seedgrid.studio.resolving import check_offered
from seedgrid.testing.fake import FAKE_CARD
from seedgrid.web import launch

ROOT = Path(app.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serve(folder) as address:
        yield address


@pytest.fixture(scope="module")
def library(folder: Path, address: str) -> Iterator[Library]:
    """The library of the page, opened from this process as well."""
    httpx.get(address)
    with Library(folder) as library:
        yield library


@pytest.fixture(scope="module")
def client(address: str) -> Client:
    return Client(address, verbose=False)


def test_only_the_api_is_public(address: str) -> None:
    """Every event but the published functions is hidden from API users."""
    named = httpx.get(f"{address}gradio_api/info").json()["named_endpoints"]
    assert set(named) == {"/grid", "/refine", "/recipe", "/verify"}


def test_the_api_gives_the_very_files(client: Client, library: Library) -> None:
    """/grid hands out PNGs byte for byte as in the library, recipes inside."""
    pictures, records = client.predict("a red fox", "3, 9", api_name="/grid")
    for picture, record, seed in zip(pictures, records, (3, 9), strict=True):
        given = Path(picture).read_bytes()
        assert given == library.get(record["id"]).path.read_bytes()
        assert png.read(given).recipe.seed == record["seed"] == seed


def test_the_api_takes_every_field_that_makes_a_picture(client: Client, address: str) -> None:
    """In the table's names, those of old first; the prompt names LoRAs, no grid is enlarged."""
    info = httpx.get(f"{address}gradio_api/info").json()["named_endpoints"]["/grid"]
    names = [one["parameter_name"] for one in info["parameters"]]
    always = ["prompt", "seeds", "negative", "steps", "guidance", "size", "scheduler", "model"]
    assert names[:8] == always
    told = {row.name for row in FIELDS if row.belongs == "recipe"} - {"lora", "typed", "upscaler"}
    assert set(names) == told
    _, records = client.predict("a fox", "1", width="2", determinism="off", api_name="/grid")
    recipe = records[0]["recipe"]
    assert (recipe["lock_width"], recipe["determinism"]) == (2, "off")
    with pytest.raises(AppError, match="width"):
        client.predict("a fox", "1", width="three", api_name="/grid")


def test_the_api_says_that_batches_are_narrower(client: Client) -> None:
    """Where the lock was found to leak, the width is another one, and whoever asked is told.

    The cache of what was found is the whole session's: no other test paints in float16.
    """
    recipe = resolve(Request(prompt="a fox", dtype="float16"), FAKE_CARD)[0]
    advise(recipe, report_for(recipe, tested=2))
    _, records = client.predict("a fox", "1", dtype="float16", api_name="/grid")
    assert records[0]["recipe"]["lock_width"] == 2
    assert records[0]["notices"] == [str(Notice("width_lowered", width=2, usual=4))]
    _, records = client.predict("a fox", "1", api_name="/grid")
    assert records[0]["notices"] == []


def test_the_api_refines_on_the_seed(client: Client) -> None:
    """/refine keeps the picture's seed and appends the words."""
    _, records = client.predict("a red fox", "7", api_name="/grid")
    _, varied = client.predict(records[0]["id"], [", artsy"], api_name="/refine")
    assert [(r["seed"], r["prompt"]) for r in varied] == [(7, "a red fox, artsy")]


def test_the_api_reads_a_recipe(client: Client) -> None:
    """/recipe says what an uploaded PNG holds."""
    pictures, records = client.predict("a red fox", "1", api_name="/grid")
    record = client.predict(handle_file(pictures[0]), api_name="/recipe")
    assert record["recipe"] == records[0]["recipe"]


def test_the_api_verifies(client: Client, tmp_path: Path) -> None:
    """/verify finds a picture identical, and one with a changed pixel not."""
    pictures, _ = client.predict("a red fox", "1", api_name="/grid")
    path = pictures[0]
    assert client.predict(handle_file(path), api_name="/verify")["verdict"] == "identical"
    with Image.open(path) as image:
        texts = PngInfo()
        for key, text in image.text.items():
            texts.add_itxt(key, text)
        image.putpixel((3, 3), (1, 2, 3))
        image.save(tmp_path / "edited.png", pnginfo=texts)
    edited = client.predict(handle_file(str(tmp_path / "edited.png")), api_name="/verify")
    assert edited["verdict"] == "altered"
    assert edited["differing_pixels"] == 1


@pytest.mark.parametrize(
    "path",
    [
        f"seedgrid/pictures/{'0' * 32}.png",
        "seedgrid/pictures/..%2F..%2Fetc%2Fpasswd.png",
        "seedgrid/assets/../app.py",
        "seedgrid/assets/..%2Fapp.py",
        "seedgrid/assets/model/model_index.json",
        "seedgrid/assets/fonts/LICENSE.txt",
    ],
)
def test_nothing_else_is_served(address: str, path: str) -> None:
    """Unknown ids, other folders and other kinds of files are not found."""
    assert httpx.get(address + path).status_code == 404


def test_analytics_and_history_are_off(address: str) -> None:
    """The page reports to nobody and keeps no prompts in the browser's run history."""
    config = httpx.get(f"{address}config").json()
    assert config["analytics_enabled"] is False
    assert config.get("run_history") in (False, None)
    assert httpx.get(f"{address}gradio_api/runs").status_code == 404
    assert httpx.get(f"{address}monitoring").status_code == 404


def test_a_taken_port_gives_the_next_one() -> None:
    """Two pages at once stand side by side."""
    with socket.socket() as taken:
        taken.bind((launch.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < launch.find_port(launch.HOST, port) < port + 100


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python knows no IPv6")
@pytest.mark.parametrize("host", ["::", "::1"])
def test_an_ipv6_address_is_an_address(host: str) -> None:
    """`--host ::` was refused as that of another machine: its port was tried on IPv4 alone."""
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind((host, 0))
        except OSError as error:
            pytest.skip(f"this machine has no IPv6: {error}")
        taken.listen()
        port = taken.getsockname()[1]
        assert port < launch.find_port(host, port) < port + 100


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--lang", "xx"), "xx"),
        pytest.param(("--host", "192.0.2.1"), "192.0.2.1", marks=pytest.mark.sweep),
    ],
)
def test_bad_arguments_exit_2_with_one_line(arguments: tuple[str, ...], word: str) -> None:
    """The command says what is wrong and does not start."""
    done = subprocess.run(
        [sys.executable, ROOT / "app.py", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert word in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_space_builds_the_page_at_import() -> None:
    """On a Space `demo` is there after the import, with a library for each visitor."""
    code = (
        "import app; print(type(app.demo).__name__,"
        " type(app._answers.libraries).__name__, type(app._answers.studio.backend).__name__)\n"
        # As our programs end: torch is still being imported beside, and Python's own end takes
        # modules apart under that, or waits for ever for one.
        "from seedgrid.core.process import leave; leave(0)"
    )
    environment = os.environ | {"SPACE_ID": "someone/seedgrid"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
    )
    assert done.stdout.split() == ["GuardedServer", "VisitorLibraries", "InstalledBackend"]


@pytest.mark.parametrize("model", ["/etc", "assets/model", "../main", "someone/unknown"])
def test_a_space_offers_what_is_installed_and_no_path(model: str) -> None:
    """Strangers cannot ask what lies on the server's disk: a path is refused unread."""
    with pytest.raises(ModelError) as caught:
        InstalledBackend().card(model)
    assert caught.value.code == "model_not_offered"
    assert "bundled" in str(caught.value)


def test_a_picture_from_elsewhere_brings_no_other_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe may name anything: the owner's list counts before it is looked up."""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled")
    with Studio(library=tmp_path, backend=InstalledBackend()) as studio:
        (own,) = studio.resolve(Request(prompt="a fox", seeds=(0,)))
        check_offered([own], studio.card)
        other = own.model.model_copy(update={"id": "someone/else"})
        with pytest.raises(ModelError) as caught:
            check_offered([own, own.replace(model=other)], studio.card)
    assert caught.value.code == "model_not_offered"


def test_a_space_paints_with_its_own_model() -> None:
    """The one it was started with, whatever it is, and the bundled one."""
    own = str(bundled_folder())
    for model in (own, "bundled", None):
        assert InstalledBackend(own).card(model).ref.weights_sha256
