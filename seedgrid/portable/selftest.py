"""Compare what this machine computes with the hashes of the definition (docs/portable.md).

If a hash differs, so do this machine's pictures from those of others: this build of torch or NumPy
has a fault, or a new version of a library calls other operations. Each operation that has a rule is
tested, with numbers from the raw integers of PCG64, which NumPy promises never to change.
"""

import hashlib
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
    """Return queries, and keys and values of `others` tokens."""
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
        F.conv2d(
            _uneven(3, 8, 12, 10),
            numbers(6, 8, 3, 3, seed=2),
            numbers(6, seed=3),
            padding=1,
        ),
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 8, 3, 3, seed=2), stride=2, padding=(0, 1)),
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 4, 3, 1, seed=2), groups=2, dilation=2),
        F.conv2d(_uneven(3, 8, 12, 10), numbers(6, 8, 1, 1, seed=2), numbers(6, seed=3)),
        F.conv1d(_uneven(3, 8, 30), numbers(6, 8, 5, seed=2), padding=2),
        F.conv2d(numbers(1, 96, 64, 64), numbers(6, 96, 3, 3, seed=2), padding=1),  # Winograd's
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

GOLDEN: Final[dict[str, str]] = {  # SHA-256 of what each case gives, in version 1: never changed
    "exp": "d8b26284615be431897b0d9cddc9d1467546020001c67a7ecdffc0ecc474bfa1",
    "expm1": "81b56f9b23eee486e0375800970dfc052b8ab474379ed7264c95632239566974",
    "log": "118eb7132c534651d17efd38f2534c03de6aa75adb53d3731935234deddb5c85",
    "sin": "4d43a383e5ff0e9edef46c53ce8ba7113b28cd79151334d1cc2ec5f7f57068a2",
    "cos": "af416a1cf16e88ab58c7805e5e768a50120f38d22640c610493a4cf9b5209e31",
    "tan": "d6128c932dc530bbbdf74c246f4d1b3b01a272dfde882478131d2ef08919bfe6",
    "tanh": "67e789c70a0fd77ec5fa15f773a5330a325117dcbef24cd70dc55b23f776b8e9",
    "sqrt": "8da9113c258609ebb0a5652a6c54aa13874dda0edbe7bb883cb4bbdb0fdff1e4",
    "rsqrt": "7365f7366c9ee82f6e2876f5ed98b6ea0af87c820078bc5179c7de4660b00605",
    "atan": "bd60ceb931a8ded8fb923c54ca537635fe83134b7aaf0aced44b3e9104e8487e",
    "acos": "0b067054a66c3be9f7992f0886d3fc1041264fe0bdeb194e657c30dadff4adb9",
    "silu": "bdccdc1d4c8c30e4517d588242e0d6fee5112742b770f7a046fd493947e53738",
    "sigmoid": "c234d1e3653e3a493e1255443f8ee5625f4e436e6b36a393c45ebca76fdf732f",
    "gelu": "f9b3c1de52263bc4917664f01a1b838f46ee87ae88a764f7bfcb0d36ac579322",
    "relu": "43cded7c63a391b42b2bf3bef049f34ac888b347aba07fdeef4029e002c60d79",
    "pow": "9ea34da208d279b89a0d66b3598d70c131ff4bc8c0cfb6bdefe7ddb9cb5b3382",
    "reciprocal": "d563bc1bc5d930b7862b49067078284367d754d48bc2cf56d0a15be5281bb2d2",
    "add": "7fe52e71eed15249d8560713467c52ca182f7c4041fca7b2e9b453957ac6ddbe",
    "sub": "f8f8ae99f30fb622aedeb474683ed6756ce991e6ce5e0c9a264ab808a0f1558d",
    "rsub": "55c9636fd2b9d520272f4cb8e2559f8c3f5984a64de695134b0e54579722234b",
    "div": "29cf28af7a64fba26bc974280ebb9ac9b0c2dce3de5390ff7c406038f7d402da",
    "clamp": "e8aac92133b75c5fd31786297c31cfc55f1930c8016f1f692190320675fbe205",
    "clamp_min": "2c16e3bde104996ff256e3a5636b02f4b72f59059721cf7a053f6663521e5b6e",
    "clamp_max": "6f75c5dc1e94897708568cffcfda664f9ee651ddc716adb6849570e69d844a7c",
    "maximum": "039879b812c795fc7ff2bdf807a72e4d60425207ba86b02bfaf67f625cbd4e78",
    "minimum": "be5055b15424f1a7c5c62c746b98e4f9c17a71ad2fb5ac55a74bd6287391c055",
    "amax": "9b93f667208e8d90e0dff74dd75ce31b0d08cca008971eeefa4859ef5e78581f",
    "amin": "ce120a28861c170553754ba3ee9320ed29744dc916e97dea1282a2910f71d5b8",
    "addcmul": "aa589991e0a625c080b9176c19557235236ada4d8b5c090138679aa2d712d42a",
    "addcdiv": "29ebbeb9cd983099ab1ea9e5759879c3ae1ce185a0d76cb122edeb00e4351bb4",
    "lerp": "00a9bc75ecd153638e1ffb2bf820124c7482c64061d47d76c6aa1ac5d85f63b6",
    "mean": "d6a0c41d579ca4037cb05b209fd1072f7e17025ed1aae89e85ce42703fcb5b5e",
    "sum": "34e6876fb88c36bd2b1480737f7c2c681a72229d37ba42c883433645f569dbd9",
    "var": "9245f9a11fb807422ee84817d0b1a03ffec9e4a367a4a98e7d663346cdac856f",
    "std": "66431079415dbd235a1040200a312098b708166eb92b907e4436292b2844bcb3",
    "linalg_vector_norm": "0b6a1d1a8eecf6b9691f08e705c78d7008024c0abe43897e63ae1bd661ebd6d0",
    "cumsum": "dab84b453d8f45d90a57d8fa14b98c4638f33636a28aa3bd82e2e08116930099",
    "cumprod": "559f1fba4fb33ff97ad92d74257e9f05a8ffdb462d350b8f4f26c8b4f0827a19",
    "linspace": "83f33080550fa75dfb2ff894841986bb10d9f0c3dd10ad070aa37cf43a9a9b54",
    "arange": "bf01a9cd3a71469091b3fb3692a43cecd5eacc696d00eab4f725ce9e8f9dbf2a",
    "_softmax": "a185ef0b875b8118e8813e86c1b004abe6701bfbc2829602f758549244dba56e",
    "_safe_softmax": "ae45ec322c842ee8b32a310f0a99585938c3ca1ae92dd86ca12e690b6d5a3a26",
    "native_group_norm": "3ea6c5bbd31252f6f3cebd8b365b841a5a1acd58220c4f021998e965262e4d2a",
    "native_layer_norm": "87ae4f51277222b5d7506f84d4d8079f8a30adef3e3ed28b61a74670cee4d77e",
    "dot": "7461b1056298d222253bdb8d54b64450c944f5166464c046adc760b02ff26a6f",
    "bmm": "2a673a41f05622525c54d4b8cdc2aa42afa8aad424034cd673d2b321fd46c89b",
    "mm": "a72e53eef2ec1096f6e8b99f74ab45bb11788df3b16a71fda3614d048c2c24cb",
    "addmm": "96d1961bbb91d1795e20db34d3dc70e62b59cef081d0c6a5af37fc8341f18d33",
    "baddbmm": "a64a47f2ab278c23ff0f65cba4b4d3963f9e61dc4e56f5258df5a6de34b1b368",
    "linear": "aa17a1f370daf4c1ff5d78a2499990f3eeb90c78260cf0563de146a68a1c88ea",
    "convolution": "db75aec59e170d4fe3995f85074596a821ce08aa98d6f67afad28ab299d8c48f",
    "scaled_dot_product_attention": "746495ab62ca6afe4f5d236e1f9591581aa491f44f12326a4eafd97e30e40cdd",  # noqa: E501
    "randn": "5afc891948502d7f3c6c60d9f3d20ec37243a19a781ca2bebc17be348a808304",
    "normal_": "b77d554a5e167f77e73f9b929f8abf7263550060f285a30021a8c5cfe088bb90",
    "_linalg_solve_ex": "3b5815f6770e9099b6c78aa8f559d0bb9dc4bc3fdc1d0afc4213527d0c650f6b",
}

# Of the bundled model's tiny grid (selftest.py)
GRID: Final = "49ea8b8f120665e2270bf12e894e9cc2bacc16c540774bdc61781341b6c2274e"


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
