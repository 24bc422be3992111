"""Where a training stands, in one file, and how it went, a line of a log each now and then."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file

from tools.training.places import work_dir

Tensors = Mapping[str, torch.Tensor]


def save_checkpoint(
    path: Path, *, weights: Tensors, averages: Tensors, optimizer: Tensors, **counts: int
) -> None:
    """Write the file, whole or not at all."""
    tensors = {f"model.{name}": value for name, value in weights.items()}
    tensors |= {f"ema.{name}": value for name, value in averages.items()}
    tensors |= {f"opt.{name}": value for name, value in optimizer.items()}
    tensors |= {name: torch.tensor(count) for name, count in counts.items()}
    unfinished = path.with_suffix(".tmp")
    save_file({k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}, unfinished)
    unfinished.replace(path)


def note(name: str, **figures: float) -> dict[str, float]:
    """Write figures and the time into the log of a training, and return them."""
    entry = figures | {"time": round(time.time())}
    with (work_dir() / f"{name}.log.jsonl").open("a") as log:
        log.write(json.dumps(entry) + "\n")
    return entry


def part(stored: Tensors, name: str) -> dict[str, torch.Tensor]:
    """One part of what was read: `model`, `ema` or `opt`."""
    prefix = f"{name}."
    return {key[len(prefix) :]: value for key, value in stored.items() if key.startswith(prefix)}
