"""Compare this machine's results with hashes of the results that docs/portable.md defines.

If a hash differs, so do the portable pictures of this machine and of others: this build of torch or
NumPy has a fault, or a new version of a library calls other operations. Each operation that has a
rule is tested, with numbers from the raw integers of PCG64, which NumPy promises never to change.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from diffusers import DiffusionPipeline

from seedgrid.portable.mode import portable_block

Case = Callable[[], Any]


def numbers(*shape: int, seed: int = 1, low: float = -4.0, high: float = 4.0) -> torch.Tensor:
    """Return uniformly distributed float32 numbers, on the default device."""
    raw = np.random.PCG64(seed).random_raw(int(np.prod(shape))) >> np.uint64(40)
    values = raw.astype(np.float64) * 2.0**-24 * (high - low) + low
    return torch.from_numpy(values.astype(np.float32)).view(*shape).to(torch.get_default_device())


def _positive(*shape: int) -> torch.Tensor:
    return numbers(*shape, low=0.0, high=8.0) + 2.0**-20


def _uneven(*shape: int) -> torch.Tensor:
    """Return numbers with one channel a thousand times as large as the others."""
    values = numbers(*shape, seed=5)
    values[:, 1] *= 1024.0
    return values


def _very_uneven(*shape: int) -> torch.Tensor:
    """Return numbers that use all bits, with one channel a million times as large."""
    values = numbers(*shape, seed=6) / 3.0
    values[:, 1] *= 2.0**20
    return values


def _minus_zeros(*shape: int) -> torch.Tensor:
    """Return negative zeros: on some processors an operation changes their sign."""
    return torch.full(shape, -0.0)


def _far_from_zero(*shape: int) -> torch.Tensor:
    """Return numbers whose mean is a million times their standard deviation."""
    return numbers(*shape) + 2.0**22


def _tokens(others: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the queries of 17 tokens, and the keys and values of `others` tokens."""
    shape = (2, 3, others, 8)
    return numbers(2, 3, 17, 8), numbers(*shape, seed=2), numbers(*shape, seed=3)


def _generator() -> torch.Generator:
    return torch.Generator("cpu").manual_seed(20)


def _wide(function: Callable[[torch.Tensor], torch.Tensor]) -> Case:
    """Return the case of an element-wise function, for numbers between -16 and 16."""
    return lambda: function(numbers(20000, low=-16.0, high=16.0))


CASES: Final[dict[str, Case]] = {  # By the name of the rule; to be called inside `portable()`
    "exp": _wide(torch.exp),
    "expm1": _wide(torch.expm1),
    "log": lambda: torch.log(_positive(20000)),
    "sin": lambda: torch.sin(numbers(20000, low=-1024.0, high=1024.0)),
    "cos": lambda: torch.cos(numbers(20000, low=-1024.0, high=1024.0)),
    "tan": _wide(torch.tan),
    "tanh": _wide(torch.tanh),
    "sqrt": lambda: torch.sqrt(_positive(20000)),
    "rsqrt": lambda: torch.rsqrt(_positive(20000)),
    "atan": _wide(torch.atan),
    "acos": lambda: torch.acos(numbers(20000, low=-1.0, high=1.0)),
    "silu": lambda: F.silu(numbers(200001, low=-16.0, high=16.0)),
    "sigmoid": _wide(torch.sigmoid),
    "gelu": lambda: tuple(
        F.gelu(numbers(20000, low=-8.0, high=8.0), approximate=name) for name in ("none", "tanh")
    ),
    "relu": lambda: (
        torch.relu(numbers(20000, low=-16.0, high=16.0)),
        torch.relu(_minus_zeros(37)),
    ),
    "pow": lambda: (
        _positive(999) ** 2,
        _positive(999) ** 0.5,
        _positive(999) ** -0.5,
        _positive(999) ** 2.2,
        2.5 ** numbers(999),
        _positive(999) ** numbers(999, seed=2),
    ),
    "reciprocal": lambda: _positive(999).reciprocal(),
    "add": lambda: torch.add(numbers(999), numbers(999, seed=2), alpha=0.7),
    "sub": lambda: torch.sub(numbers(999), numbers(999, seed=2), alpha=0.7),
    "rsub": lambda: torch.rsub(numbers(999), 1.3, alpha=0.7),
    "div": lambda: (numbers(999) / 0.7, numbers(999) / _positive(999)),
    "clamp": lambda: (
        torch.clamp(numbers(999), -1.1, 0.3),
        torch.clamp(_minus_zeros(37), -1.1, 0.3),
    ),
    "clamp_min": lambda: (
        torch.clamp_min(numbers(999), 0.3),
        torch.clamp_min(_minus_zeros(37), -1.1),
    ),
    "clamp_max": lambda: (
        torch.clamp_max(numbers(999), 0.3),
        torch.clamp_max(_minus_zeros(37), 0.3),
    ),
    "maximum": lambda: (
        torch.maximum(numbers(999), numbers(999, seed=2)),
        torch.maximum(_minus_zeros(37), _minus_zeros(37)),
    ),
    "minimum": lambda: (
        torch.minimum(numbers(999), numbers(999, seed=2)),
        torch.minimum(_minus_zeros(37), _minus_zeros(37)),
    ),
    "amax": lambda: (numbers(9, 111).amax(1), _minus_zeros(9, 111).amax(1)),
    "amin": lambda: (numbers(9, 111).amin(1), _minus_zeros(9, 111).amin(1)),
    "addcmul": lambda: torch.addcmul(
        numbers(999), numbers(999, seed=2), numbers(999, seed=3), value=0.7
    ),
    "addcdiv": lambda: torch.addcdiv(numbers(999), numbers(999, seed=2), _positive(999), value=0.7),
    "lerp": lambda: (
        torch.lerp(numbers(999), numbers(999, seed=2), 0.3),
        torch.lerp(numbers(999), numbers(999, seed=2), 0.7),
        torch.lerp(torch.full((3,), -torch.inf), numbers(3), 0.5),
    ),
    "mean": lambda: (numbers(7, 301).mean(1), numbers(7, 301).mean()),
    "sum": lambda: numbers(7, 301, 3).sum((1, 2), keepdim=True),
    "var": lambda: (numbers(7, 301).var(1), _far_from_zero(2001, 301).var(1)),
    "std": lambda: (numbers(7, 301).std(1, keepdim=True), _far_from_zero(2001, 301).std(1)),
    "linalg_vector_norm": lambda: torch.linalg.vector_norm(numbers(7, 301), dim=1),
    "cumsum": lambda: numbers(999).cumsum(0),
    "cumprod": lambda: numbers(999, low=0.5, high=1.5).cumprod(0),
    "linspace": lambda: torch.linspace(0.0292, 0.1095, 1000, dtype=torch.float32),
    "arange": lambda: torch.arange(0.1, 1000.0, 0.37, dtype=torch.float32),
    "_softmax": lambda: torch.softmax(numbers(31, 77, low=-16.0, high=16.0), 1),
    "_safe_softmax": lambda: torch.ops.aten._safe_softmax(numbers(31, 77), -1),
    "native_group_norm": lambda: F.group_norm(
        numbers(3, 8, 9, 7), 4, numbers(8, seed=2), numbers(8, seed=3)
    ),
    "native_layer_norm": lambda: F.layer_norm(
        numbers(31, 40), (40,), numbers(40, seed=2), numbers(40, seed=3)
    ),
    "dot": lambda: torch.dot(numbers(999), numbers(999, seed=2)),
    "bmm": lambda: (
        torch.bmm(numbers(3, 17, 33), numbers(3, 33, 9, seed=2)),
        torch.bmm(_very_uneven(3, 33, 17).mT, numbers(3, 33, 9, seed=2)),
        torch.bmm(numbers(3, 17, 33), _very_uneven(3, 33, 9)),
    ),
    "mm": lambda: torch.mm(numbers(17, 33), numbers(33, 9, seed=2)),
    "addmm": lambda: (
        torch.addmm(numbers(9, seed=3), numbers(17, 33), numbers(33, 9, seed=2)),
        torch.addmm(numbers(9, seed=3), numbers(3, 33), numbers(33, 9), beta=0.5, alpha=0.7),
    ),
    "baddbmm": lambda: torch.baddbmm(
        numbers(3, 17, 9), numbers(3, 17, 33), numbers(3, 33, 9, seed=2), beta=0.5, alpha=0.7
    ),
    "linear": lambda: F.linear(_uneven(17, 33), numbers(9, 33, seed=2), numbers(9, seed=3)),
    "convolution": lambda: (
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 8, 3, 3, seed=2), numbers(6, seed=3), padding=1),
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 8, 3, 3, seed=2), stride=2, padding=(0, 1)),
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 4, 3, 1, seed=2), groups=2, dilation=2),
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 8, 1, 1, seed=2), numbers(6, seed=3)),
        F.conv1d(_uneven(3, 8, 30), numbers(6, 8, 5, seed=2), padding=2),
        F.conv2d(numbers(1, 96, 64, 64), numbers(6, 96, 3, 3, seed=2), padding=1),  # By Winograd
    ),
    "scaled_dot_product_attention": lambda: (
        F.scaled_dot_product_attention(*_tokens(21)),
        F.scaled_dot_product_attention(*_tokens(17), is_causal=True),
        F.scaled_dot_product_attention(*_tokens(21), attn_mask=numbers(2, 1, 1, 21, seed=4) > 0),
    ),
    "randn": lambda: tuple(torch.randn(n, generator=_generator()) for n in (1000, 5)),
    "normal_": lambda: torch.empty(3, 33).normal_(generator=_generator()),
    "_linalg_solve_ex": lambda: torch.linalg.solve(numbers(3, 3), numbers(3, seed=2)),
}

GOLDEN: Final[dict[str, str]] = json.loads(Path(__file__).with_name("golden.json").read_bytes())
"""SHA-256 of each case's result in version 1 of the arithmetic, which never changes."""

GRID: Final = "e392f75565ee4ca96b22b4ba94c0e2b03dbbb75a0698ff99b76215ecedae0edd"
"""The `grid_digest` of the bundled model."""


def digest(value: Any) -> str:
    """Return the SHA-256 of the bytes of tensors, in order, the least significant byte first."""
    tensors = value if isinstance(value, tuple | list) else [value]
    hashed = hashlib.sha256()
    for tensor in tensors:
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def run(name: str, device: torch.device | None = None) -> str:
    """Compute a case by portable arithmetic, by default on the CPU, and return its hash."""
    with device or torch.device("cpu"), portable_block():
        return digest(CASES[name]())


def check(device: torch.device | None = None) -> tuple[str, ...]:
    """Return the names of the operations whose hashes differ on this machine; see `run`."""
    return tuple(name for name in CASES if run(name, device) != GOLDEN.get(name))


def check_grid(folder: Path) -> tuple[str, ...]:
    """Return `("grid",)` if the bundled model's pictures (`grid_digest`) differ on this CPU."""
    pipeline = DiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return () if grid_digest(pipeline) == GRID else ("grid",)


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
