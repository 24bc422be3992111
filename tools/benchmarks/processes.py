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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tools.benchmarks.contest import measure
from tools.benchmarks.plain import ROOT

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
from seedgrid import Studio, tune_process
tune_process()
with Studio(sys.argv[1], sys.argv[2]) as studio:
    if len(sys.argv) > 3:
        count = int(sys.argv[5]) if len(sys.argv) > 5 else 4
        studio.grid("Labrador in the style of Vermeer", range(count), width=int(sys.argv[3]),
                    height=int(sys.argv[3]), num_inference_steps=int(sys.argv[4]), fresh=True,
                    portable="portable" in sys.argv)
    else:
        studio.engine.warm(studio.model)
        studio.engine.submit_task(lambda backend: None).result()
        assert studio.engine.warmth.state == "ready"
"""

_WAIT_S = 120.0


def peak_memory(
    name: str, model: Path, scratch: Path, rounds: int, *, portable: bool = False
) -> dict[str, object]:
    """Compare the most memory of the plain script with that of ours, one grid each, in turns.

    The first grid of a kind on a machine needs more, once: it is decoded both ways, to compare.
    """
    plain = ["256", "4"]  # More steps need no more memory.
    ours = [*plain, "4", "portable"] if portable else plain
    _run(_python(_OUR_GRID, model, scratch / "memory", *ours))
    plain_mb, ours_mb = [], []
    for _ in range(rounds):
        plain_mb.append(_run(_python(_PLAIN_GRID, model, *plain, scratch))[1])
        ours_mb.append(_run(_python(_OUR_GRID, model, scratch / "memory", *ours))[1])
    return measure(
        f"peak memory of a {'portable ' if portable else ''}grid, {name}, 256 px",
        1.5 if portable else 1.05,
        median(ours_mb) / median(plain_mb),
        plain_mb=[round(value) for value in plain_mb],
        ours_mb=[round(value) for value in ours_mb],
    )


def memory_of_many(model: Path, scratch: Path) -> dict[str, object]:
    """Compare the most memory for sixty-four cells with that for eight, in a process each."""
    few_mb, many_mb = (
        _run(_python(_OUR_GRID, model, scratch / "many", "256", "2", str(count)))[1]
        for count in (8, 64)
    )
    ratio = many_mb / few_mb
    return measure("memory of 64 cells over 8", 1.1, ratio, mb=[round(few_mb), round(many_mb)])


def memory_of_library(scratch: Path) -> dict[str, object]:
    """Say what page and library need without a model, in MB: the most while the page is served."""
    _, peak_mb = _until_page(scratch)
    return measure("page and library, MB", 150, peak_mb)


def time_to_ready(model: Path, scratch: Path, rounds: int) -> dict[str, object]:
    """Compare a bare script that loads the model with a studio that does."""
    plain_s, ours_s = [], []
    for _ in range(rounds):
        plain_s.append(_run(_python(_PLAIN_GRID, model))[0])
        ours_s.append(_run(_python(_OUR_GRID, model, scratch / "ready"))[0])
    ratio = median(ours / plain for ours, plain in zip(ours_s, plain_s, strict=True))
    seconds = {
        "plain_median_s": round(median(plain_s), 2),
        "ours_median_s": round(median(ours_s), 2),
    }
    return measure("process start to model ready", 1.1, ratio, **seconds)


def time_to_page(scratch: Path, rounds: int) -> dict[str, object]:
    """Time `python app.py` until it answers HTTP 200, in seconds."""
    times = [_until_page(scratch)[0] for _ in range(rounds)]
    all_s = [round(value, 2) for value in times]
    return measure("python app.py to HTTP 200, s", 3.0, median(times), all_s=all_s)


def _python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def _run(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds and the most memory it had, in MB."""
    start_s = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(complaint.decode()[-2000:])
    return time.perf_counter() - start_s, usage.ru_maxrss / 1024


def _until_page(scratch: Path) -> tuple[float, float]:
    """Start the page; return the seconds until it answers, and its memory at that moment in MB."""
    start_s = time.perf_counter()
    with page_served(scratch / "page") as (_, process_id):
        return time.perf_counter() - start_s, resident_mb(process_id)


@contextmanager
def page_served(library: Path, model: Path | None = None) -> Iterator[tuple[str, int]]:
    """Start the page, wait until it answers, give its address and process, and stop it."""
    chosen = [] if model is None else ["--model", str(model)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "app.py", "--port", str(port), "--library", str(library), *chosen],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for_answer(f"http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/", process.pid
    finally:
        process.terminate()
        process.wait()


def _wait_for_answer(address: str) -> None:
    start_s = time.perf_counter()
    while time.perf_counter() - start_s < _WAIT_S:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 (ours)
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise RuntimeError("the page did not answer")


def resident_mb(process_id: int) -> float:
    """Read what a process holds; 0 where the system does not say."""
    status = Path(f"/proc/{process_id}/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
