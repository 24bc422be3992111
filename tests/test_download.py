"""`seedgrid models --download` without a network: one sentence, at once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parent.parent


def download(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seedgrid", "models", "--download", "org/name"],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_hub_that_hangs_up_is_asked_no_five_times(tmp_path: Path) -> None:
    """A hundred lines of traceback once came after five retries."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                asked.append(connection)
                connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = download(HF_ENDPOINT=address, HF_HOME=str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "“org/name” could not be downloaded" in done.stderr
    assert len(asked) <= 2  # The client itself tries a connection that broke once more.


def test_a_hub_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for environment in ({"HF_ENDPOINT": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}):
        done = download(HF_HOME=str(tmp_path), **environment)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "“org/name” could not be downloaded" in done.stderr
