"""Plain diffusers in a process of its own: what a user's script does, on command.

A process of its own, because SeedGrid tells the C library how to keep memory, and that would make
the plain script faster too. Commands and answers are JSON lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class PlainScript:
    """The guide's script, running in another process with its model loaded.

    Args:
        model: The model's folder.
        folder: Where the pictures are written.
        threads: Of torch; None is its own choice.
    """

    def __init__(self, model: Path, folder: Path, threads: int | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tools.benchmarks.plain",
                str(model),
                str(folder),
                str(threads or 0),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._ask({})

    def paint(self, prompts: Sequence[str], seeds: Sequence[int], **settings: float) -> None:
        """Paint and save, one batch."""
        self._ask({"prompts": list(prompts), "seeds": list(seeds), "settings": settings})

    def cpu_s(self) -> float:
        """Read the processor time of the script."""
        return float(self._ask({})["cpu_s"])

    def close(self) -> None:
        """End the script."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def _serve(model: str, folder: str, threads: int) -> None:
    import diffusers
    import torch

    if threads:
        torch.set_num_threads(threads)
    pipe = diffusers.DiffusionPipeline.from_pretrained(model)
    pipe.set_progress_bar_config(disable=True)
    pipe.scheduler = diffusers.DDIMScheduler.from_config(pipe.scheduler.config)
    for line in sys.stdin:
        command = json.loads(line)
        if command:
            generators = [torch.Generator("cpu").manual_seed(seed) for seed in command["seeds"]]
            images = pipe(command["prompts"], generator=generators, **command["settings"]).images
            for number, image in enumerate(images):
                image.save(f"{folder}/{number}.png")
        print(json.dumps({"cpu_s": time.process_time()}), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
