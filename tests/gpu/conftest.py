"""What the tests on a GPU share. They are run by name only; see `test_gpu.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cuda", help="cpu is a rehearsal without a GPU")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def placement(device: str) -> Placement:
    return Placement(device=device, previews=False, threads=1 if device == "cpu" else None)


@pytest.fixture
def backend() -> Iterator[DiffusersBackend]:
    backend = DiffusersBackend()
    yield backend
    backend.close()
