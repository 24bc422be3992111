"""Portable arithmetic: one answer, whatever computes it; and hashes that would find another one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import painting
import pipelines
import pytest
import torch
from command import run_python
from refusing import refused
from sweeping import rest_swept

from seedgrid.core.errors import RunError
from seedgrid.portable import functions, portable
from seedgrid.portable.layer_rules import normal
from seedgrid.portable.rules import EXACT, RULES
from seedgrid.portable.selftest import CASES, GOLDEN, GRID, check, digest, grid_digest, numbers, run
from seedgrid.portable.tables import PortableArray
from tools.portable.child import arguments, bundled, expected, paint, psnr_db, walk
from tools.portable.golden import SCHEDULERS

MODELS = ["sd", "flux"]  # one with convolutions, one with none but in its decoder

OTHER_PROCESSORS = {
    "as if without AVX, three threads": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2_Usable,-AVX2,-FMA4",
        "OMP_NUM_THREADS": "3",
        "MKL_NUM_THREADS": "3",
    },
    "with AVX2, two threads": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
    },
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    """Small tensors on a busy machine: threads would wait for each other."""
    with painting.one_thread():
        yield


def test_every_rule_has_a_case_and_a_hash() -> None:
    """No rule is unproven, and no rule is also called exact."""
    assert set(RULES) == set(CASES) == set(GOLDEN)
    assert not set(RULES) & EXACT


@pytest.mark.parametrize("name", CASES)
def test_operation_gives_the_bits_of_the_definition(name: str) -> None:
    """The hash of each operation is the one that never changes."""
    assert run(name) == GOLDEN[name]


@pytest.mark.parametrize("name", sorted(set(RULES) - {"linear", "scaled_dot_product_attention"}))
def test_golden_hash_finds_one_bit_of_a_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash that no fault can change proves nothing: one bit of one number, and it differs.

    Torch's own form of a rule differs on some processors and not on others, so it proves nothing.
    """
    rule = RULES[name]
    monkeypatch.setitem(RULES, name, lambda *args, **kwargs: one_bit_off(rule(*args, **kwargs)))
    assert run(name) != GOLDEN[name]


def one_bit_off(result: Any) -> Any:
    """The result of an operation, written over where its first number lies."""
    tensor = result[0] if isinstance(result, tuple | list) else result
    tensor.view(-1)[:1].view(torch.uint8)[0] ^= 1
    return result


@pytest.mark.parametrize("processor", rest_swept(OTHER_PROCESSORS, [*OTHER_PROCESSORS][:1]))
def test_another_processor_and_process_gives_the_same_bits(processor: str) -> None:
    """Operations, schedulers, the tiny grid and whole pipelines, with instructions taken away."""
    environment = os.environ | OTHER_PROCESSORS[processor]
    child = run_python("-m", "tools.portable", "child", *MODELS, env=environment)
    found: dict[str, str] = {}
    for line in child.stdout.splitlines():
        found |= json.loads(line)
    assert found == expected(MODELS, has_basics=True)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_scheduler_leads_where_the_definition_says(name: str) -> None:
    """Every scheduler on offer, its tables and its steps; and that is where torch's own leads.

    A sigma that became NaN once gave each machine another picture, and a hash of NaN.
    """
    with portable():
        led = walk(name)
    assert digest(led) == SCHEDULERS[name]
    torch.testing.assert_close(led, walk(name), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_threads_do_not_show_in_a_bit(num_threads: int) -> None:
    """Each computes other pieces; operations and the tiny grid have their golden hashes."""
    torch.set_num_threads(num_threads)
    try:
        assert check() == ()
        assert grid_digest(bundled()) == GRID
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("name", rest_swept(["sd", "sdxl", "sd3", "flux"], ["sd", "flux"]))
def test_family_is_the_same_alone_in_any_slot_and_close_to_torchs_own(name: str) -> None:
    """Widths 1, 2 and 4, slots turned round; at least 65 dB from the plain picture."""
    pipeline = pipelines.build(name)
    four = paint(pipeline, name, (1, 2, 3, 4))
    assert torch.equal(paint(pipeline, name, (4, 3)), four[[3, 2]])
    assert torch.equal(paint(pipeline, name, (2,)), four[1:2])
    plain = pipeline(**arguments(name, (1, 2, 3, 4))).images
    assert psnr_db(plain, four) >= 65


def test_channels_last_gives_the_same_bits() -> None:
    """Another order of numbers in memory is no other order of sums."""
    pipeline = pipelines.build("sd")
    plain = paint(pipeline, "sd", (5, 6))
    pipeline.unet.to(memory_format=torch.channels_last)
    pipeline.vae.to(memory_format=torch.channels_last)
    assert torch.equal(paint(pipeline, "sd", (5, 6)), plain)


@pytest.mark.parametrize("shape", [(1, 4, 8, 8), (3, 33), (16,), (5,), (2,)])
def test_noise_is_torchs_but_for_the_last_bits(shape: tuple[int, ...]) -> None:
    """A seed's composition stays: same draws, same order, also below 16 with a spare number."""
    mine, theirs = (torch.Generator("cpu").manual_seed(9) for _ in range(2))
    for _ in range(3):
        torch.testing.assert_close(
            normal(shape, mine), torch.randn(shape, generator=theirs), atol=4e-6, rtol=0
        )
    assert torch.equal(mine.get_state()[:5000], theirs.get_state()[:5000])


def test_unknown_operation_is_refused_by_its_name() -> None:
    """What has no rule gives no picture that could pass for a portable one."""
    with refused(RunError, "portable_refused", match="aten::special_bessel_j0"), portable():
        torch.special.bessel_j0(numbers(3))
    with refused(RunError, "portable_refused", match="numpy.power"):
        np.power.reduce(np.ones(3).view(PortableArray))


def test_torch_is_as_it_was_after_the_block() -> None:
    """Outside, torch, NumPy and the schedulers' modules are their own again."""
    from diffusers.schedulers import scheduling_ddim

    with portable():
        assert scheduling_ddim.np is not np
    assert scheduling_ddim.np is np
    assert torch.special.bessel_j0(numbers(3)).shape == (3,)


FUNCTIONS: list[tuple[Callable[[Any], Any], Callable[[float], float], float, float]] = [
    (functions.exp, math.exp, -30.0, 30.0),
    (functions.expm1, math.expm1, -3.0, 3.0),
    (functions.log, math.log, 1e-6, 60.0),
    (functions.sin, math.sin, -900.0, 900.0),
    (functions.cos, math.cos, -900.0, 900.0),
    (functions.tanh, math.tanh, -5.0, 5.0),
    (functions.atan, math.atan, -50.0, 50.0),
    (functions.acos, math.acos, -1.0, 1.0),
]


@pytest.mark.parametrize(("own", "true", "low", "high"), FUNCTIONS)
def test_elementary_function_is_true_to_the_thirteenth_digit(
    own: Callable[[Any], Any], true: Callable[[float], float], low: float, high: float
) -> None:
    """The definition's bound, against the C library's function."""
    x = np.linspace(low, high, 4001)
    wanted = np.array([true(float(value)) for value in x])
    error = np.abs(own(x) - wanted) / np.maximum(np.abs(wanted), 1e-2)
    assert error.max() < 2e-13
