"""Builds studio and server and serves the page: for `app.py`, `seedgrid ui` and Spaces."""

import atexit
import inspect
import logging
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from seedgrid.core.variables import (
    count,
    is_public,
    is_zero_gpu,
    megabytes,
    number,
    trusted_proxies,
)

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # Gradio reads it at its import
# Uvicorn's default trusts the forwarded addresses of every process on this machine.
os.environ.setdefault("FORWARDED_ALLOW_IPS", trusted_proxies())

from seedgrid.diffusion.process import large_import


def _unknown_file(of: object) -> str:
    raise OSError(of)


with large_import(), ExitStack() as stack:
    # Gradio compares or writes a `.pyi` file for each component class whose source file
    # `inspect` finds. That takes half of the time of its import, and no option turns it off.
    stack.callback(setattr, inspect, "getfile", inspect.getfile)
    inspect.getfile = _unknown_file  # type: ignore[assignment] # by the parameter's name
    import gradio as gr

    from seedgrid.core.errors import InputError, RunError, SeedGridError
    from seedgrid.core.process import first_stops
    from seedgrid.core.text import one_line
    from seedgrid.diffusion.backend import Backend, ManyPainters, Placement
    from seedgrid.diffusion.deferred import DeferredBackend, InstalledBackend
    from seedgrid.engine import Bounds
    from seedgrid.formats.own_texts import check_signing
    from seedgrid.library.visitor_libraries import VisitorLibraries
    from seedgrid.locales import locales
    from seedgrid.studio import Studio, default_model
    from seedgrid.web.server.app import make_server
    from seedgrid.web.server.calls import KEPT_S, delete_old_files, every_minute
    from seedgrid.web.server.page import MAX_FILE_MB
    from seedgrid.web.server.routes import PageServices
    from seedgrid.web.server.waiting import FileWorkBounds

logger = logging.getLogger("seedgrid")

HOST: Final = "127.0.0.1"
PORT: Final = 7860
_MCP_UNTIL: Final = 2  # The first major version of `mcp` that Gradio does not support
_EXIT_LOST: Final = 70  # The exit code when the engine is lost: EX_SOFTWARE of sysexits.h
_TELL_S: Final = 3.0  # How long pages and `/healthz` report the lost engine before the process ends
_FILE_WORK_TOGETHER: Final = 64  # Maximum number of file tasks of all visitors together


def main(
    *,
    model: str | None = None,
    library: str | Path | None = None,
    host: str = HOST,
    port: int = PORT,
    lang: str = "auto",
    backend: Backend | None = None,
    cluster: str | None = None,
) -> None:
    """Serve the page until it is interrupted; `model` and `library` are as in `Studio`.

    With `port` 0, or if the port is in use, a free one is taken. `lang` is a language of `locales/`
    (`"ko"`) or `"auto"`, the browser's. `backend` is diffusers by default. `cluster`, a Ray
    cluster, is `local`, `auto` or `ray://HOST:PORT`. Raises InputError for a host, port, language
    or cluster that is not valid; RunError if the cluster cannot be reached.
    """
    if lang not in languages():
        known = ", ".join(languages())
        raise InputError("language_unknown", field="lang", value=lang, choices=known)
    uploads = _uploads_folder()
    painter = _painter(backend or InstalledBackend(model or default_model()), cluster)
    if is_public():
        if library or os.environ.get("SEEDGRID_LIBRARY"):
            say("A public page keeps pictures in a temporary folder: your library is not used.")
        services = _public_services(model, painter)
    else:
        services = PageServices(_make_studio(model, library, painter))
    with services.studio as studio:
        language = None if lang == "auto" else lang
        server = make_server(services, uploads, language=language, host=host)
        free = find_port(host, port)
        if port and free != port:
            say(f"Port {port} is in use, taking {free}.")
        name = f"[{host}]" if ":" in host else host  # As in a URL
        address = serve(server, server_name=name, server_port=free)
        say(f"SeedGrid is at {address}")
        warm(studio)
        wait_until_stopped(server, studio)


def serve(server: gr.Server, **options: Any) -> str:  # noqa: ANN401 (as `Server.launch` has them)
    """Serve the page in the background; return its address."""
    _, address, _ = server.launch(
        prevent_thread_lock=True,
        quiet=True,
        ssr_mode=False,
        share=False,
        show_error=False,
        run_history=False,
        enable_monitoring=False,
        footer_links=[],
        max_threads=400,  # API calls at once, with those that wait for the engine
        max_file_size=f"{MAX_FILE_MB}mb",
        state_session_capacity=64,  # API sessions
        mcp_server=_offers_mcp(),
        _frontend=False,
        **options,
    )
    # Gradio looks for API calls a thousand times a second, which takes a tenth of a core.
    if (queue := getattr(server.get_blocks(), "_queue", None)) is not None:
        queue.sleep_when_free = 0.02
    return str(address)


def _offers_mcp() -> bool:
    """Tell whether to serve MCP: never on a public page, or with an unsupported `mcp`."""
    try:
        return not is_public() and int(version("mcp").partition(".")[0]) < _MCP_UNTIL
    except PackageNotFoundError:
        return False


def wait_until_stopped(server: gr.Server, studio: Studio) -> None:
    """Wait for Ctrl+C or SIGTERM, then stop all runs and save finished pictures."""
    stopped = threading.Event()
    with first_stops(stopped.set):
        while not stopped.wait(0.5):  # Windows handles no Ctrl+C in a wait without a timeout.
            pass
        say("Stopping; what is finished is kept. Again ends at once.")
        studio.close()
        server.get_blocks().close(verbose=False)


def find_port(host: str, port: int) -> int:
    """Return the port, or the next one that is free; 0 asks the system for one."""
    for candidate in range(port, port + 100) if port else (0,):
        try:
            return _check_port(host, candidate)
        except (OSError, OverflowError) as error:
            reason = error
    raise InputError("address_refused", field="port", value=f"{host}:{port}", reason=reason)


def _check_port(host: str, port: int) -> int:
    """Return a port that is free at `host` and at 127.0.0.1, where Gradio always looks for one."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.create_server(address, family=family) as probe:
        bound = int(probe.getsockname()[1])
    return bound if family == socket.AF_INET else _check_port(HOST, bound)


def build_space() -> tuple[gr.Server, PageServices]:
    """Return the server of a Space's page, and its services."""
    uploads = _uploads_folder()
    services = _public_services(None, _painter(InstalledBackend(default_model())))
    return make_server(services, uploads), services


def warm(studio: Studio) -> None:
    """Load the model in the background; not with ZeroGPU, which lends a GPU only for requests."""

    def load() -> None:
        try:
            studio.engine.warm(studio.model)
        except SeedGridError as error:
            logger.error("the model cannot be loaded: %s", error)  # noqa: TRY400 (a sentence, no bug)

    if not is_zero_gpu():
        threading.Thread(target=load, name="seedgrid-warm", daemon=True).start()


def languages() -> tuple[str, ...]:
    """Return the values of `--lang`."""
    return ("auto", *locales())


def give_up() -> None:
    """End the process, whose engine is lost; a supervisor sees the exit code and restarts it."""
    say(f"error: {RunError('engine_lost')}")
    time.sleep(_TELL_S)
    os._exit(_EXIT_LOST)  # A thread that hangs cannot prevent this.


def say(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{one_line(line)}\n")
    sys.stderr.flush()


def _public_services(model: str | None, painter: Backend | ManyPainters) -> PageServices:
    """Return a public page's services; a visitor's own library is deleted after a long absence."""
    folder = Path(tempfile.mkdtemp(prefix="seedgrid-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    studio = _make_studio(model, folder / "api", painter)
    libraries = VisitorLibraries(
        folder / "visitors",
        max_visitors=count("SEEDGRID_MAX_VISITORS"),
        max_bytes=megabytes("SEEDGRID_MAX_VISITORS_MB"),
    )
    every_minute(libraries.delete_unused)
    bounds = FileWorkBounds(
        address=count("SEEDGRID_MAX_FILES_PER_ADDRESS"),
        together=_FILE_WORK_TOGETHER,
        window_s=number("SEEDGRID_MAX_FILES_S_PER_ADDRESS"),
        download_bytes=megabytes("SEEDGRID_MAX_DOWNLOAD_MB"),
        dropped=count("SEEDGRID_MAX_DROPPED"),
    )
    return PageServices(studio, libraries, bounds)


def _painter(installed: Backend, cluster: str | None = None) -> Backend | ManyPainters:
    """Return the backend that paints: a cluster's, ZeroGPU's on its Spaces, or this process's."""
    if cluster:
        from seedgrid.diffusion.away import ray_node

        say(f"The cluster is at ray://{ray_node.connect(cluster)}")
        from seedgrid.diffusion.away.ray_cluster import RayCluster

        return RayCluster(installed, DeferredBackend)
    if is_zero_gpu():
        from seedgrid.diffusion.away.computing import AwayBackend, ZeroGpu

        return AwayBackend(ZeroGpu(), installed)
    return installed


def _make_studio(
    model: str | None, library: str | Path | None, backend: Backend | ManyPainters
) -> Studio:
    check_signing()
    bounds = Bounds(
        queue_s=number("SEEDGRID_MAX_QUEUE_S"),
        run_s=number("SEEDGRID_MAX_RUN_S"),
        runs_per_address=count("SEEDGRID_MAX_RUNS_PER_ADDRESS"),
    )
    return Studio(
        model,
        library,
        backend=backend,
        placement=Placement(),
        runs_per_owner=count("SEEDGRID_MAX_RUNS_PER_VISITOR") or sys.maxsize,
        bounds=bounds,
        on_lost=give_up,
    )


def _uploads_folder() -> Path:
    """Make Gradio's upload folder before the server reads its name; files stay there for an hour.

    It is a folder of its own, since `GRADIO_TEMP_DIR` may hold files of other programs.
    """
    if parent := os.environ.get("GRADIO_TEMP_DIR"):
        Path(parent).mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="seedgrid-uploads-", dir=parent)
    os.environ["GRADIO_TEMP_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    every_minute(partial(delete_old_files, Path(folder), KEPT_S))
    return Path(folder)
