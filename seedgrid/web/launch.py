"""Put studio and page together and serve them: for `app.py`, `seedgrid ui` and a Space alike.

torch is imported by the engine's own thread, after the server answers. Nothing is built when this
module is imported.
"""

import atexit
import logging
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from seedgrid.core.variables import is_public, is_zero_gpu, trusted_proxies

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read once, when gradio is imported
# Uvicorn would believe whatever a peer on this machine says of where it comes from.
os.environ.setdefault("FORWARDED_ALLOW_IPS", trusted_proxies())

from seedgrid.web.server.gradio_import import quickly

with quickly():
    import gradio as gr
    from gradio.utils import get_upload_folder

    from seedgrid.core.errors import InputError, RunError, SeedGridError
    from seedgrid.core.process import first_stops
    from seedgrid.core.text import one_line
    from seedgrid.diffusion.backend import Backend, ManyPainters, Placement
    from seedgrid.diffusion.deferred import DeferredBackend
    from seedgrid.locales import locales
    from seedgrid.studio import Studio, default_model
    from seedgrid.web import bounds
    from seedgrid.web.components.theme import make_theme
    from seedgrid.web.page import Answers, build_app, make_answers, make_i18n
    from seedgrid.web.server import app
    from seedgrid.web.server.connections import bound_waiting
    from seedgrid.web.server.sessions import NUM_KEPT, keep_no_sessions
    from seedgrid.web.state.visitor_libraries import VisitorLibraries

logger = logging.getLogger("seedgrid")

HOST: Final = "127.0.0.1"
PORT: Final = 7860
_MAX_FILE_SIZE: Final = f"{app.MAX_FILE_MB}mb"
_MAX_THREADS: Final = 400
"""Also how many events Gradio's queue lets in at once, those that wait without a thread too."""
_POLL_S: Final = 0.5
_EXIT_LOST: Final = 70
_TELL_S: Final = 3.0
"""Open pages and `/healthz` say for so long that the engine is lost, before the process ends."""
"""Of a process whose engine no longer comes back: EX_SOFTWARE of sysexits.h."""


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
    """Serve the page until it is interrupted.

    Args:
        model: As in `Studio`.
        library: As in `Studio`.
        host: The address to listen on.
        port: 0 takes a free one; the next free one is taken when this one is in use.
        lang: One of `locales/`, for example `"ko"`; `"auto"` leaves it to the browser.
        backend: What paints; diffusers by default, a fake one in tests.
        cluster: Where it paints: `local`, `auto` or `ray://HOST:PORT`; in this process by default.

    Raises:
        InputError: The host, the port, the language or the cluster cannot be.
        RunError: The cluster cannot be used.
    """
    if lang not in languages():
        choices = ", ".join(languages())
        raise InputError("language_unknown", field="lang", value=lang, choices=choices)
    _keep_uploads_apart()
    if is_public():
        answers = _public_answers(model, backend, cluster)
    else:
        painter = _spread(backend or DeferredBackend(), cluster) if cluster else backend
        answers = make_answers(_make_studio(model, library, painter))
    with answers.studio as studio:
        language = None if lang == "auto" else lang
        demo = build_app(answers, language=language)
        free = find_port(host, port)
        if port and free != port:
            say(f"Port {port} is in use, taking {free}.")
        options = launch_options(answers, language=language, host=host)
        serve(demo, server_port=free, **options)
        say(f"SeedGrid is at {demo.local_url}")
        threading.Thread(target=warm, args=(studio,), name="seedgrid-warm", daemon=True).start()
        wait_until_stopped(demo, studio)


def serve(demo: gr.Blocks, **options: Any) -> None:  # noqa: ANN401 (as `Blocks.launch` has them)
    """Serve a page in the background, with what `launch_options` says and more."""
    demo.launch(prevent_thread_lock=True, state_session_capacity=NUM_KEPT, **options)
    keep_no_sessions(demo)
    bound_waiting(demo.server, bounds.count("SEEDGRID_MAX_OPEN_PER_ADDRESS"))


def wait_until_stopped(demo: gr.Blocks, studio: Studio) -> None:
    """Wait for Ctrl+C or SIGTERM, then stop what runs and keep what is finished."""
    stopped = threading.Event()
    with first_stops(stopped.set):
        while not stopped.wait(_POLL_S):  # A wait without an end hears no Ctrl+C on Windows.
            pass
        say("Stopping; what is finished is kept. Again ends at once.")
        studio.close()
        demo.close(verbose=False)


def launch_options(answers: Answers, *, language: str | None, host: str | None) -> dict[str, Any]:
    """Return what `Blocks.launch` is told."""
    return {
        "app_kwargs": {
            "routes": app.routes(
                answers.studio, answers.libraries, answers.file_work, answers.handlers.follow
            ),
            "exception_handlers": {
                SeedGridError: app.refuse,
                MemoryError: app.refuse_for_memory,
            },
            "middleware": app.middleware(
                language=language,
                host=host,
                uploads=Path(get_upload_folder()),
                bounds=bounds.of_uploads(),
                max_open=bounds.count("SEEDGRID_MAX_OPEN_PER_ADDRESS"),
                is_framed=host is None,
            ),
        },
        "server_name": host and _in_address(host),
        "i18n": make_i18n(),
        "theme": make_theme(),
        "footer_links": [],
        "run_history": False,
        "enable_monitoring": False,
        "ssr_mode": False,
        "share": False,
        "show_error": False,
        "quiet": True,
        "max_threads": _MAX_THREADS,
        "max_file_size": _MAX_FILE_SIZE,
    }


def find_port(host: str, port: int) -> int:
    """Return the port, or the next one that is free; 0 asks the system for one."""
    for candidate in range(port, port + 100) if port else (0,):
        try:
            return _bound(host, candidate)
        except (OSError, OverflowError) as error:
            reason = error
    raise InputError("address_refused", field="port", value=f"{host}:{port}", reason=reason)


def _bound(host: str, port: int) -> int:
    """Listen on a port for a moment, and return it.

    Gradio looks for a free port at 127.0.0.1 whatever the host, so it must be free there too.
    """
    family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        found = int(probe.getsockname()[1])
    return found if family == socket.AF_INET else _bound(HOST, found)


def _in_address(host: str) -> str:
    """Return a host as it stands in an address, where colons would begin a port."""
    return f"[{host}]" if ":" in host else host


def build_space() -> tuple[gr.Blocks, Answers]:
    """Build the page of a Space."""
    _keep_uploads_apart()
    answers = _public_answers(None, None, None)
    return build_app(answers), answers


def warm(studio: Studio) -> None:
    """Load the model behind the open page; what goes wrong is said there.

    A GPU that is lent is somebody's time, and nobody has asked for a picture yet.
    """
    if is_zero_gpu():
        return
    try:
        studio.warm()
    except SeedGridError as error:
        logger.error("the model cannot be loaded: %s", error)  # noqa: TRY400 (a sentence, no bug)


def languages() -> tuple[str, ...]:
    """What `--lang` may be."""
    return ("auto", *locales())


def give_up() -> None:
    """End the process whose engine is lost; a supervisor sees the exit code and starts it anew."""
    say(f"error: {RunError('engine_lost')}")
    time.sleep(_TELL_S)
    os._exit(_EXIT_LOST)  # No thread that hangs can keep it from this.


def say(line: str) -> None:
    """Tell the person at the terminal."""
    sys.stderr.write(f"{one_line(line)}\n")
    sys.stderr.flush()


def _public_answers(model: str | None, backend: Backend | None, cluster: str | None) -> Answers:
    """Put together a page for strangers: a library for each, deleted when they stay away."""
    from seedgrid.diffusion.deferred import InstalledBackend

    folder = Path(tempfile.mkdtemp(prefix="seedgrid-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    installed = backend or InstalledBackend(model or default_model())
    painter = _spread(installed, cluster) if cluster else _lent(installed)
    studio = _make_studio(model, folder / "api", painter)
    libraries = VisitorLibraries(
        folder / "visitors",
        max_visitors=bounds.count("SEEDGRID_MAX_VISITORS"),
        max_bytes=bounds.megabytes("SEEDGRID_MAX_VISITORS_MB"),
    )
    return make_answers(studio, libraries, bounds.of_file_work())


def _lent(installed: Backend) -> Backend:
    """Return what paints on a Space: on ZeroGPU a GPU that is lent, elsewhere this process."""
    if not is_zero_gpu():
        return installed
    from seedgrid.diffusion.away.backend import AwayBackend
    from seedgrid.diffusion.away.zero_gpu import ZeroGpu

    return AwayBackend(ZeroGpu(), installed)


def _spread(installed: Backend, cluster: str) -> ManyPainters:
    """Return what paints on a cluster, after connecting to it."""
    from seedgrid.diffusion.away import ray_node

    say(f"The cluster is at ray://{ray_node.connect(cluster)}")
    from seedgrid.diffusion.away.ray_cluster import RayCluster

    return RayCluster(installed, DeferredBackend)


def _make_studio(
    model: str | None,
    library: str | Path | None,
    backend: Backend | ManyPainters | None = None,
) -> Studio:
    return Studio(
        model,
        library,
        backend=backend,
        placement=Placement(),
        runs_per_owner=bounds.runs_per_owner(),
        bounds=bounds.of_engine(),
        on_lost=give_up,
    )


def _keep_uploads_apart() -> None:
    """Give Gradio a folder of this program's own for uploads, so that it can be tidied.

    Before the page is built: every component asks once where it is.
    """
    if "GRADIO_TEMP_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="seedgrid-uploads-")
        os.environ["GRADIO_TEMP_DIR"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
