"""What Prometheus reads of queue and workers; strangers see nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_painters import Several
from starlette.applications import Starlette
from starlette.testclient import TestClient

from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.server.health import metrics_routes


def test_workers_and_queue_are_told(tmp_path: Path) -> None:
    """Each metric with what it says and of which kind it is."""
    with Studio(library=tmp_path, backend=Several(a=FakeBackend())) as studio:  # type: ignore[arg-type]
        client = TestClient(Starlette(routes=metrics_routes(studio)))
        studio.grid("a fox", seeds="0-3", width=64, height=64)
        text = client.get("/metrics").text
    assert "# TYPE seedgrid_workers gauge\nseedgrid_workers 1\n" in text
    assert "seedgrid_queue_runs 0\n" in text


def test_a_public_page_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless its owner asks for it."""
    with Studio(library=tmp_path, backend=FakeBackend()) as studio:
        assert metrics_routes(studio)
        monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
        assert not metrics_routes(studio)
        monkeypatch.setenv("SEEDGRID_METRICS", "1")
        assert metrics_routes(studio)
