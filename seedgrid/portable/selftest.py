"""Compare what this machine computes with the hashes of the definition.

A hash that differs means other pictures than on other machines: a fault in this build of torch or
NumPy, or a library that calls other operations than before.

    wrong = check()   # () if all is well, after a second or two
"""

import hashlib
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from diffusers import DiffusionPipeline

from seedgrid.portable.cases import CASES, numbers
from seedgrid.portable.golden import GOLDEN, GRID
from seedgrid.portable.mode import native_block, portable_block

_TURNS: Final = 10


def digest(value: Any) -> str:
    """Return a SHA-256 over the bytes of tensors, in order, least significant byte first."""
    tensors = value if isinstance(value, tuple | list) else [value]
    hashed = hashlib.sha256()
    for tensor in tensors:
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def run(name: str, device: torch.device | None = None) -> str:
    """Compute one case by portable arithmetic and return its hash; on the CPU by default."""
    with device or torch.device("cpu"), portable_block():
        return digest(CASES[name]())


def check(device: torch.device | None = None) -> tuple[str, ...]:
    """Return the names of the operations whose hash differs here; see `run`."""
    return tuple(name for name in CASES if run(name, device) != GOLDEN.get(name))


def check_grid(folder: Path) -> tuple[str, ...]:
    """Return `("grid",)` if the bundled model's tiny grid differs here; on the CPU."""
    pipeline = DiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return () if grid_digest(pipeline) == GRID else ("grid",)


def cost(device: torch.device) -> float:
    """Return how many times as long as torch a denoiser's block takes, by the shortest of turns.

    Both are measured in turns: other programs only make turns longer. One thread, since several
    would wait for each other.
    """
    maps = numbers(2, 96, 32, 32).to(device)
    kernel = torch.nn.Parameter(numbers(96, 96, 3, 3, seed=2).to(device), requires_grad=False)
    dense = torch.nn.Parameter(numbers(96, 96, seed=3).to(device), requires_grad=False)

    def seconds(arithmetic: AbstractContextManager[None]) -> float:
        with arithmetic:
            start_s = time.perf_counter()
            hidden = F.conv2d(F.silu(F.group_norm(maps, 8)), kernel, padding=1)
            tokens = F.linear(hidden.flatten(2).transpose(1, 2), dense).unsqueeze(1)
            F.scaled_dot_product_attention(tokens, tokens, tokens).sum().item()
            return time.perf_counter() - start_s

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        turns = [(seconds(portable_block()), seconds(native_block())) for _ in range(_TURNS)]
    finally:
        torch.set_num_threads(threads)
    return min(own for own, _ in turns) / min(plain for _, plain in turns)


def grid_digest(pipeline: Any) -> str:
    """Paint four tiny pictures with the bundled model's pipeline and return their hash."""
    with portable_block():
        pipeline.scheduler = type(pipeline.scheduler).from_config(pipeline.scheduler.config)
        pictures = pipeline(
            ["a red sailboat at sunset"] * 4,
            generator=[torch.Generator("cpu").manual_seed(seed) for seed in range(4)],
            num_inference_steps=2,
            guidance_scale=2.0,
            width=64,
            height=64,
            output_type="pt",
        ).images
    return digest(pictures)
