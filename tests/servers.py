"""A server of the page, asked in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.testclient import TestClient

from seedgrid.web.server.app import make_server
from seedgrid.web.server.routes import PageServices


def client_of(services: PageServices, folder: Path, *, language: str | None = None) -> TestClient:
    """Return a client of the page that these answer; `folder` is where uploads lie."""

    async def make() -> (
        TestClient
    ):  # Gradio opens a loop where none is running, and leaves it open.
        server = make_server(services, folder, language=language, host="127.0.0.1")
        return TestClient(server, base_url="http://127.0.0.1")

    return asyncio.run(make())
