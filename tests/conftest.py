"""What many tests need: a backend without a model, recipes for it, and places for pictures."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hub import Hub
from hypothesis import HealthCheck, settings
from stores import MakeRecipes, MemoryStore

from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Placement
from seedgrid.engine import Engine
from seedgrid.library import Library
from seedgrid.studio import Studio
from seedgrid.studio.model_manager import ModelManager
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.server.routes import PageServices

if TYPE_CHECKING:
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend

collect_ignore = ["gpu"]
"""Run by name, on a machine with a GPU (tests/gpu/test_gpu.py); here nothing may be skipped."""

ELSEWHERE = (
    "Not run here: sweeps (python -m pytest -m sweep) and the tests of tools/, which need "
    "requirements-training.txt (python -m pytest tools)"
)

# How long an example takes says something of the machine, not of the code. Whoever types the
# README's command tries the same examples as everybody; `.ci/run` looks for new ones.
_NO_CLOCK = [HealthCheck.too_slow]
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=_NO_CLOCK)
settings.register_profile("search", deadline=None, suppress_health_check=_NO_CLOCK)
settings.load_profile("same")


@pytest.fixture
def backend() -> FakeBackend:
    """A backend that paints at once."""
    return FakeBackend()


@pytest.fixture(scope="module")
def painter() -> DiffusersBackend:
    """A backend that really paints; its models stay loaded for the tests of a file."""
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend

    return DiffusersBackend()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "library")


@pytest.fixture
def store() -> MemoryStore:
    """An empty library in memory."""
    return MemoryStore()


@pytest.fixture
def engine(backend: FakeBackend, store: MemoryStore) -> Iterator[Engine]:
    """An engine on the fake backend and the library in memory, closed afterwards."""
    with Engine(backend, store) as engine:
        yield engine


@pytest.fixture
def studio(tmp_path: Path, backend: FakeBackend) -> Iterator[Studio]:
    """A studio on the file's backend with a library of its own, as a page has one."""
    folder = tmp_path / "library"
    with Studio(library=folder, backend=backend, placement=Placement()) as studio:
        yield studio


@pytest.fixture
def services(studio: Studio) -> PageServices:
    """What the page of that studio services."""
    return PageServices(studio)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Studio]:
    """Another studio, with another library."""
    with Studio(library=tmp_path / "elsewhere", backend=FakeBackend()) as studio:
        yield studio


@pytest.fixture
def works(studio: Studio) -> tuple[tuple[Entry, ...], ...]:
    """Three works of two pictures each in the studio's library, the last one the newest."""
    small = {"width": 64, "height": 64, "num_inference_steps": 1}
    prompts = ("a red fox", "a blue house", "a red house")
    return tuple(studio.grid(each, (seed, 9), **small) for seed, each in enumerate(prompts))


@pytest.fixture
def make_recipes(backend: FakeBackend) -> MakeRecipes:
    """Make small, quick recipes: `make_recipes("a fox", seeds=(0, 1), steps=3)`."""

    def make(
        prompt: str = "misty mountains", seeds: tuple[int, ...] = (0, 1, 2, 3), steps: int = 3
    ) -> tuple[Recipe, ...]:
        request = Request(
            prompt=prompt, seeds=seeds, width=64, height=64, num_inference_steps=steps
        )
        return resolve(request, backend.card(None))

    return make


@pytest.fixture(scope="session", autouse=True)
def cache_in_a_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep digests, places and probe results of the tests away from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEDGRID_CACHE", str(tmp_path_factory.mktemp("cache")))
        # Models that were given to SeedGrid as files, where the system has such a place.
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder of a small real pipeline of `tests/pipelines.py`, saved once a session."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            import pipelines

            folders[name] = pipelines.save(name, tmp_path_factory.mktemp("models") / name)
        return folders[name]

    return folder


@pytest.fixture
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered of what other tests proved, probed or read."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(model_folder: Callable[[str], Path], name: str) -> Path:
    """The folder of the small pipeline that a test has as its parameter `name`."""
    return model_folder(name)


@pytest.fixture(scope="session")
def sd(model_folder: Callable[[str], Path]) -> Path:
    """The folder of the small Stable Diffusion."""
    return model_folder("sd")


@pytest.fixture
def sd_studio(sd: Path, tmp_path: Path) -> Iterator[Studio]:
    """A studio that paints with it, on one thread."""
    with Studio(str(sd), tmp_path / "library", placement=Placement(threads=1)) as studio:
        yield studio


@pytest.fixture
def library_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the default library, away from the user's own; not made yet."""
    monkeypatch.setenv("SEEDGRID_LIBRARY", str(tmp_path / "library"))
    monkeypatch.delenv("SEEDGRID_MODEL", raising=False)
    return tmp_path / "library"


@pytest.fixture
def fake(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """Let studios paint with it instead of loading a model."""
    monkeypatch.setattr("seedgrid.diffusion.deferred.DeferredBackend", lambda: backend)
    return backend


@pytest.fixture(scope="session")
def published_hub(sd: Path) -> Iterator[Hub]:
    """A hub with a small Stable Diffusion model, and beside it what nobody loads."""
    with Hub() as hub:
        more = {
            "README.md": b"---\nlicense: mit\n---\n",
            "whole.safetensors": b"x" * 5000,
            "unet/diffusion_pytorch_model.bin": b"\x80\x04.",
            "unet/diffusion_pytorch_model.fp16.safetensors": b"x" * 5000,
            "vae_other/diffusion_pytorch_model.safetensors": b"x" * 5000,
        }
        hub.add("someone/foxes", sd, more)
        yield hub


@pytest.fixture
def hub(published_hub: Hub) -> Iterator[Hub]:
    """The same, well again, and nothing asked yet."""
    published_hub.breaks, published_hub.spoils, published_hub.asked = [], False, []
    found = published_hub.repositories["someone/foxes"]
    found.gated, found.announced = False, {}
    yield published_hub
    published_hub.may_go.set()


@pytest.fixture
def hub_home(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without models: an empty cache of the hub, and no memory of other tests.

    The hub's client has read its environment already, so its own constants are set; and a token.
    """
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.address)
    template = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("seedgrid.models.download._PAUSE_S", 0.0)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    return tmp_path


@pytest.fixture
def manager(hub_home: Path) -> Iterator[ModelManager]:  # noqa: ARG001 (the cache)
    """What the models panel and `seedgrid models` ask, on a machine without models."""
    manager = ModelManager()
    yield manager
    manager.downloads.close()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Share the whole suite between two processes, file by file; a few files are sooner in one."""
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return 2 if is_whole and (os.cpu_count() or 1) > 1 else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the browser's tests come last: Playwright keeps an event loop in the main thread.

    While that runs, nobody else there can start one; and the quick tests tell more the sooner.
    Long files come before short ones, so that no process is left alone with a long one at the end.
    """
    size = {path: path.stat().st_size for path in {item.path for item in items}}
    items.sort(key=lambda item: ("browser" in item.path.parts, -size[item.path], item.path))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Iterator[None]:
    """Say last, in one line for each reason, how many tests were not run and what they need."""
    yield
    reports = terminalreporter.getreports("skipped")
    kinds = Counter(
        ("browser " if "tests/browser/" in report.nodeid else "", report.longrepr[2])
        for report in reports
        if isinstance(report.longrepr, tuple)
    )
    for (kind, reason), count in kinds.items():
        plural = "" if count == 1 else "s"
        terminalreporter.line(
            f"{count} {kind}test{plural} not run: {reason.removeprefix('Skipped: ')}"
        )
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        terminalreporter.line(ELSEWHERE)


def pytest_collection_finish() -> None:
    """Spare every later collection of garbage the modules that stay: a third of a second each."""
    gc.freeze()
