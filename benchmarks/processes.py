"""What whole processes cost: peak memory, time until a model is ready, time until the page answers.

Each figure is of a new process, so nothing is warm but the system's file cache.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.plain import ROOT

_PLAIN_GRID = """
import diffusers, sys, torch
pipe = diffusers.DiffusionPipeline.from_pretrained(sys.argv[1])
if len(sys.argv) > 2:
    generators = [torch.Generator("cpu").manual_seed(seed) for seed in range(4)]
    images = pipe(["Labrador in the style of Vermeer"] * 4, generator=generators,
                  width=int(sys.argv[2]), height=int(sys.argv[2]),
                  num_inference_steps=int(sys.argv[3])).images
    for number, image in enumerate(images):
        image.save(f"{sys.argv[4]}/plain-{number}.png")
"""

_OUR_GRID = """
import sys
from seedgrid import Studio
with Studio(sys.argv[1], sys.argv[2]) as studio:
    if len(sys.argv) > 3:
        studio.grid("Labrador in the style of Vermeer", width=int(sys.argv[3]),
                    height=int(sys.argv[3]), num_inference_steps=int(sys.argv[4]))
    else:
        studio.engine.warm()
        studio.engine.borrow(lambda backend: None).result()
        assert studio.engine.warmth.state == "ready"
"""

_WAIT_S = 120.0


def peak_memory(model: Path, scratch: Path, *, size_px: int, num_steps: int) -> dict[str, Any]:
    """Compare the most memory of the plain script with that of ours, one grid each, in MB."""
    grid = [str(size_px), str(num_steps)]
    plain_mb = _run([sys.executable, "-c", _PLAIN_GRID, str(model), *grid, str(scratch)])[1]
    ours_mb = _run([sys.executable, "-c", _OUR_GRID, str(model), str(scratch / "memory"), *grid])[1]
    return {
        "name": f"peak memory, {size_px} px",
        "target": 1.05,
        "plain_mb": round(plain_mb),
        "ours_mb": round(ours_mb),
        "ratio": round(ours_mb / plain_mb, 3),
    }


def time_to_ready(model: Path, scratch: Path, rounds: int) -> dict[str, Any]:
    """Compare a bare script that loads the model with a studio that does, in seconds."""
    plain_s, ours_s = [], []
    for _ in range(rounds):
        plain_s.append(_run([sys.executable, "-c", _PLAIN_GRID, str(model)])[0])
        ours_s.append(
            _run([sys.executable, "-c", _OUR_GRID, str(model), str(scratch / "ready")])[0]
        )
    ratios = [ours / plain for ours, plain in zip(ours_s, plain_s, strict=True)]
    return {
        "name": "process start to model ready",
        "target": 1.1,
        "plain_median_s": round(median(plain_s), 2),
        "ours_median_s": round(median(ours_s), 2),
        "ratio": round(median(ratios), 3),
    }


def time_to_page(scratch: Path, rounds: int) -> dict[str, Any]:
    """Time `python app.py` until it answers HTTP 200, in seconds."""
    times = [_until_page(scratch) for _ in range(rounds)]
    return {
        "name": "python app.py to HTTP 200",
        "target": 3.0,
        "median_s": round(median(times), 2),
        "all_s": [round(value, 2) for value in times],
    }


def _run(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds and the most memory it had, in MB."""
    start_s = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 (our own programs)
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    complaint = process.stderr.read()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(complaint.decode()[-2000:])
    return time.perf_counter() - start_s, usage.ru_maxrss / 1024


def _until_page(scratch: Path) -> float:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start_s = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "app.py", "--port", str(port), "--library", str(scratch / "page")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while time.perf_counter() - start_s < _WAIT_S:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                    if answer.status == 200:
                        return time.perf_counter() - start_s
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)
        raise RuntimeError("the page did not answer")
    finally:
        process.terminate()
        process.wait()
