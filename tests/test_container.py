"""The Dockerfile by rule, since no container engine runs in the tests; and what it relies on.

`python -m tools.container` carries its steps out in a clean root and drives what comes of it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import httpx
import pytest
from command import run_python
from serving import serve_process

from tools.container import ROOT, Step, read_steps

STEPS = read_steps(ROOT / "Dockerfile")


def steps(kind: str) -> list[Step]:
    return [step for step in STEPS if step.kind == kind]


def test_nobody_is_root_at_the_end() -> None:
    """The last user is a number, which a cluster's policy can read, and not root's."""
    assert steps("USER")[-1].text.isdigit()
    assert steps("USER")[-1].text != "0"
    after = STEPS[STEPS.index(steps("USER")[-1]) :]
    assert not [step for step in after if step.kind in ("RUN", "COPY", "ADD")]


def test_the_process_hears_its_signals() -> None:
    """Without a shell before it, SIGTERM reaches the program, which ends within a step."""
    assert json.loads(steps("CMD")[-1].text) == ["seedgrid", "ui"]
    assert not steps("ENTRYPOINT")
    assert steps("STOPSIGNAL")[-1].text == "SIGTERM"
    health = steps("HEALTHCHECK")[-1].text
    assert "/healthz" in health
    assert json.loads(health.partition("CMD ")[2])[0] == "python"


def test_what_is_copied_is_there_and_sent() -> None:
    """Every source exists, and `.dockerignore` lets it through and nothing else."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    copied = {name for step in steps("COPY") for name in step.text.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == copied
    assert not steps("ADD")


def test_what_the_container_installs_is_known_by_its_hash() -> None:
    """The lock has the releases of requirements.txt, torch excepted; pip compares each file."""
    (install,) = (step.text for step in steps("RUN") if "requirements.lock" in step.text)
    assert "--no-deps --require-hashes -r requirements.lock" in install
    lock = (ROOT / "requirements.lock").read_text()
    names = re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE)
    pinned = re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert {(name.replace("_", "-"), release) for name, release in pinned} <= set(names)
    assert "torch" not in dict(names)
    assert lock.count("--hash=sha256:") >= len(names)


def test_settings_are_variables_and_data_is_on_the_volume() -> None:
    """Every variable of ours is in the table, and every folder it names on the volume."""
    told = dict(re.findall(r"(\w+)=(\S+)", steps("ENV")[0].text))
    ours = {name: value for name, value in told.items() if name.startswith("SEEDGRID_")}
    table = (ROOT / "docs" / "operations.md").read_text()
    assert all(f"| `{name}` |" in table for name in ours)
    (volume,) = steps("VOLUME")
    folders = [value for value in (*ours.values(), told["HF_HOME"]) if value.startswith("/")]
    assert folders
    assert all(Path(volume.text) in Path(folder).parents for folder in folders)
    assert steps("EXPOSE")[-1].text == ours["SEEDGRID_PORT"]


@pytest.mark.parametrize(
    "program",
    [["app.py"], pytest.param(["-m", "seedgrid", "ui"], marks=pytest.mark.sweep)],
    ids=["app", "ui"],
)
def test_the_address_comes_from_the_environment(
    program: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container says where to listen without an argument."""
    monkeypatch.setenv("SEEDGRID_HOST", "192.0.2.1")
    monkeypatch.setenv("SEEDGRID_PORT", "7999")
    assert "192.0.2.1:7999" in run_python(*program, code=2).stderr


def test_health_says_how_it_is_until_it_is_stopped_gracefully(tmp_path: Path) -> None:
    """Process, engine, model and queue; SIGTERM ends the process within a step, with its code."""
    with serve_process(tmp_path, step_delay_s=0.1) as (address, number):
        said = httpx.get(f"{address}healthz").json()
        assert said["status"] == "ok"
        assert said["model"]["name"] == "fake"
        begin = {"prompt": "a fox", "steps": 150, "size": "64x64"}
        httpx.post(f"{address}gradio_api/call/v2/grid", json=begin)
        while (said := httpx.get(f"{address}healthz").json())["engine"] != "busy":
            time.sleep(0.05)
        assert said["queue"]["waiting"] == 1
        assert said["queue"]["left_s"] > 0
        os.kill(number, signal.SIGTERM)
        while _is_served(address):
            time.sleep(0.05)


def _is_served(address: str) -> bool:
    try:
        return httpx.get(f"{address}healthz").status_code > 0
    except httpx.TransportError:
        return False
