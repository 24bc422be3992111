"""The program that serves the page: its port, its arguments, and what a Space offers."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest
from command import run_python
from refusing import refused

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.request import Request
from seedgrid.diffusion.deferred import InstalledBackend
from seedgrid.models.shelf import bundled_folder
from seedgrid.studio import Studio
from seedgrid.studio.resolving import check_offered
from seedgrid.web import launch
from seedgrid.web.serializers.form import offered


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
    done = run_python("app.py", *arguments, code=2)
    assert word in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_space_builds_the_page_at_import() -> None:
    """On a Space `demo` is there after the import, with a library for each visitor."""
    code = (
        "import app; print(type(app.demo).__name__,"
        " type(app._services.libraries).__name__, type(app._services.studio.backend).__name__)\n"
        # As our programs end: torch is still being imported beside, and Python's own end takes
        # modules apart under that, or waits for ever for one.
        "from seedgrid.core.process import leave; leave(0)"
    )
    done = run_python("-c", code, env=os.environ | {"SPACE_ID": "someone/seedgrid"})
    assert done.stdout.split() == ["GuardedServer", "VisitorLibraries", "InstalledBackend"]


def test_starting_the_page_touches_no_stub_file_of_gradio() -> None:
    """Gradio would compare and write a `.pyi` file for each component: most of its import."""
    code = """
import sys
def watch(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".pyi"):
        print(arguments[0])
sys.addaudithook(watch)
import seedgrid.web.launch
"""
    assert run_python("-c", code).stdout == ""


@pytest.mark.parametrize("model", ["/etc", "assets/model", "../main", "someone/unknown"])
def test_a_space_offers_what_is_installed_and_no_path(model: str) -> None:
    """Strangers cannot ask what lies on the server's disk: a path is refused unread."""
    with refused(ModelError, "model_not_offered", match="bundled"):
        InstalledBackend().card(model)


def test_a_picture_from_elsewhere_brings_no_other_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe may name anything: what the owner offers counts, before it is looked up."""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "bundled")
    with Studio(library=tmp_path, backend=InstalledBackend()) as studio:
        (own,) = studio.resolve(Request(prompt="a fox", seeds=(0,)))
        check_offered([own], studio.card)
        other = own.model.model_copy(update={"id": "someone/else"})
        with refused(ModelError, "model_not_offered"):
            check_offered([own, own.replace(model=other)], studio.card)
        with refused(InputError, "dtype_not_offered"):
            check_offered([own.replace(dtype="float16")], studio.card)


def test_a_public_page_lists_what_it_offers_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own model stands there by its name, not by its path, and no other that is refused."""
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    monkeypatch.setenv("SEEDGRID_ALLOWED_MODELS", "someone/else")
    own = Path(shutil.copytree(bundled_folder(), tmp_path / "own fox"))
    with Studio(
        str(own), library=tmp_path / "library", backend=InstalledBackend(str(own))
    ) as studio:
        models = offered(studio, None, "en")["lists"]["model"]
    assert [name for _, name in models] == ["own fox"]


def test_a_space_paints_with_its_own_model() -> None:
    """The one it was started with, whatever it is, and the bundled one."""
    own = str(bundled_folder())
    for model in (own, "bundled", None):
        assert InstalledBackend(own).card(model).ref.weights_sha256


def test_an_idle_page_looks_for_calls_fifty_times_a_second() -> None:
    """Gradio's queue looks a thousand times, which takes a tenth of a core."""
    code = (
        "import gradio; from seedgrid.web.launch import find_port, serve; server = gradio.Server()"
        "; serve(server, server_name='127.0.0.1', server_port=find_port('127.0.0.1', 0))"
        "; assert server.get_blocks()._queue.sleep_when_free == 0.02"
    )
    run_python("-W", "ignore", "-c", code)
