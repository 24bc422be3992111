"""What is promised of a GPU, to be run where one is. Never run on a GPU so far.

    python -m pytest tests/gpu -q                    # on a machine with a GPU
    python -m pytest tests/gpu -q --device cpu       # a rehearsal: everything but what needs CUDA
    python -m tools.benchmarks.gpu                   # these tests, and the speeds, in one command

Small pipelines of eight families with random weights; nothing is downloaded. The whole suite of the
project leaves this folder out: what needs a GPU may not be skipped there in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from command import run_python
from painting import claim_of, paint, recipes_for
from watches import SilentWatch

from seedgrid.core.errors import SeedGridError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion import environment as switches
from seedgrid.diffusion.backend import ATTENTION_NAMES, Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.models.schedulers import TABLE
from seedgrid.verify.verifying import verify

# SDXL's pipeline calls it itself where its VAE is too wide for float16.
pytestmark = pytest.mark.filterwarnings("ignore:.*`upcast_vae` is deprecated:FutureWarning")

FAMILIES = ("sd", "sdxl", "sd3", "flux", "pixart", "sana", "lcm", "ddpm")
DTYPES = ("float32", "float16", "bfloat16")


@pytest.fixture
def needs_cuda(device: str) -> None:
    """Part of a test that a processor cannot rehearse."""
    if not device.startswith("cuda"):
        pytest.skip("a rehearsal on a processor")


def plain(folder: Path, recipes: Sequence[Recipe], device: str) -> tuple[Pixels, ...]:
    """Paint as the guide does, with diffusers alone and generators of the CPU."""
    first = recipes[0]
    pipeline: Any = diffusers.DiffusionPipeline.from_pretrained(
        folder, dtype=getattr(torch, first.dtype)
    ).to(device)
    pipeline.set_progress_bar_config(disable=True)
    generators = [torch.Generator("cpu").manual_seed(recipe.seed) for recipe in recipes]
    with switches.determinism(first.determinism):
        images = pipeline(
            [recipe.prompt for recipe in recipes],
            generator=generators,
            num_inference_steps=first.num_inference_steps,
            guidance_scale=first.guidance_scale,
            width=first.width,
            height=first.height,
        ).images
    return tuple(np.asarray(image.convert("RGB")) for image in images)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_lock_holds(
    dtype: str, backend: DiffusersBackend, folder: Path, placement: Placement
) -> None:
    """No poisoned neighbour reaches a picture; what breaks is a line of the report."""
    recipe = recipes_for(backend, folder, dtype=dtype)[0]
    report = backend.probe(recipe, placement, SilentWatch())
    assert report.tested_width == recipe.lock_width, report.checks


@pytest.mark.parametrize("scheduler", list(TABLE))
def test_every_scheduler_repeats_and_keeps_its_slots(
    scheduler: str,
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    placement: Placement,
) -> None:
    """Four pictures in two orders have the same bits."""
    folder = model_folder("lcm" if scheduler == "LCM" else "sd")
    try:
        recipes = recipes_for(backend, folder, scheduler=scheduler, num_inference_steps=4)
    except SeedGridError as error:
        pytest.skip(str(error))
    one = paint(backend, recipes, placement)
    other = paint(backend, recipes[::-1], placement)[::-1]
    assert [pixels_sha256(each) for each in one] == [pixels_sha256(each) for each in other]


@pytest.mark.parametrize("dtype", DTYPES)
def test_pictures_are_those_of_plain_diffusers(
    dtype: str, backend: DiffusersBackend, sd: Path, placement: Placement, device: str
) -> None:
    """At the same width, bit for bit; the noise comes from generators of the CPU."""
    if device == "cpu" and dtype == "float16":
        pytest.skip("diffusers warns of it on a processor")
    recipes = recipes_for(backend, sd, dtype=dtype)
    with_threads = torch.get_num_threads()
    torch.set_num_threads(placement.threads or with_threads)
    try:
        theirs = plain(sd, recipes, device)
    finally:
        torch.set_num_threads(with_threads)
    ours = paint(backend, recipes, placement)
    assert all((one == other).all() for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("level", ["strict", "seeded", "off"])
def test_a_level_repeats_itself_as_it_promises(
    level: str, backend: DiffusersBackend, sd: Path, placement: Placement
) -> None:
    """Strict repeats to the bit; the others are at most a few values off, which is printed."""
    recipes = recipes_for(backend, sd, determinism=level)
    one, other = (paint(backend, recipes, placement) for _ in range(2))
    apart = max(
        int(np.abs(a.astype(int) - b.astype(int)).max()) for a, b in zip(one, other, strict=True)
    )
    print(f"{level}: largest difference {apart}")  # noqa: T201 (for the report)
    assert apart == 0 or level != "strict"


@pytest.mark.parametrize("name", ATTENTION_NAMES)
def test_attention_kernels_keep_the_lock(
    name: str, backend: DiffusersBackend, sd: Path, placement: Placement, device: str
) -> None:
    """Each that the device has; one that it has not is refused in a sentence."""
    if device == "cpu" and name in ("flash", "efficient", "cudnn"):
        pytest.skip("a kernel of CUDA")
    recipes = recipes_for(backend, sd, dtype="float32")
    there = replace(placement, attention=name)
    try:
        one = paint(backend, recipes, there)
    except SeedGridError as error:
        pytest.skip(str(error))
    alone = paint(backend, recipes[:1], there)
    assert (one[0] == alone[0]).all()


@pytest.mark.usefixtures("needs_cuda")
@pytest.mark.parametrize("offload", ["model", "sequential"])
def test_offloading_changes_no_bit(
    offload: Any, backend: DiffusersBackend, sd: Path, placement: Placement
) -> None:
    """Where the weights wait is not what a picture is."""
    recipes = recipes_for(backend, sd)
    near = paint(backend, recipes, placement)
    far = paint(DiffusersBackend(), recipes, replace(placement, offload=offload))
    assert all((one == other).all() for one, other in zip(near, far, strict=True))


@pytest.mark.usefixtures("needs_cuda")
def test_out_of_memory_is_told_and_the_next_picture_comes(
    backend: DiffusersBackend, sd: Path, placement: Placement
) -> None:
    """With next to no memory left the run fails in a sentence; afterwards it paints as before."""
    recipes = recipes_for(backend, sd)
    before = paint(backend, recipes, placement)
    large = recipes_for(backend, sd, width=1024, height=1024)
    torch.cuda.set_per_process_memory_fraction(1e-5)
    try:
        with pytest.raises(SeedGridError) as caught:
            paint(backend, large, placement)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "memory" in str(caught.value)
    after = paint(backend, recipes, placement)
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


@pytest.mark.usefixtures("needs_cuda")
def test_tensor_float_32_of_the_host_changes_no_strict_bit(
    backend: DiffusersBackend, sd: Path, placement: Placement
) -> None:
    """Whatever the host program had set, strict pictures are the same."""
    recipes = recipes_for(backend, sd, determinism="strict")
    before = paint(backend, recipes, placement)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        after = paint(backend, recipes, placement)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


CHILD = """
import json, sys
sys.path.insert(0, "tests")
from pathlib import Path
from painting import paint, recipes_for
from watches import SilentWatch
from seedgrid.core.picture import pixels_sha256
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
folder, device, threads = json.loads(sys.argv[1])
backend = DiffusersBackend()
recipes = recipes_for(backend, Path(folder))
place = Placement(device=device, previews=False, threads=threads)
print(json.dumps([pixels_sha256(each) for each in backend.paint(recipes, place, SilentWatch())]))
"""


def test_another_process_gives_the_same_bits_and_verify_says_so(
    backend: DiffusersBackend, sd: Path, placement: Placement, device: str
) -> None:
    """Between two processes and by verify: identical."""
    recipes = recipes_for(backend, sd)
    passport = backend.prepare(recipes[0], placement)
    pictures = paint(backend, recipes, placement)
    told = json.dumps([str(sd), device, placement.threads])
    done = run_python("-W", "ignore", "-c", CHILD, told)
    there = json.loads(done.stdout.splitlines()[-1])
    assert there == [pixels_sha256(each) for each in pictures]
    claims = [
        claim_of(str(recipe.seed), pixels, recipe, passport)
        for recipe, pixels in zip(recipes, pictures, strict=True)
    ]
    assert {each.verdict for each in verify(claims, backend)} == {"identical"}
