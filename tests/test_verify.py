"""Verify: the right verdict with the right reason, on real small pipelines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run_python
from painting import PLACEMENT, claim_of, one_thread, recipes_for
from watches import SilentWatch

from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.verify.claim import Claim, read_claim
from seedgrid.verify.comparison import Box, compare_pixels
from seedgrid.verify.judging import Verdict
from seedgrid.verify.verifying import verify


@pytest.fixture(scope="module")
def grid(painter: DiffusersBackend, sd: Path) -> tuple[Claim, ...]:
    """Four pictures as they came out, on one thread."""
    return paint_claims(painter, sd, PLACEMENT)


def paint_claims(
    painter: DiffusersBackend, folder: Path, placement: Placement, **changes: Any
) -> tuple[Claim, ...]:
    recipes = recipes_for(painter, folder, **changes)
    passport = painter.prepare(recipes[0], placement)
    pictures = painter.paint(recipes, placement, SilentWatch())
    return tuple(
        claim_of(f"picture {place}", pixels, recipe, passport)
        for place, (pixels, recipe) in enumerate(zip(pictures, recipes, strict=True))
    )


def verify_one(painter: DiffusersBackend, claim: Claim) -> Verdict:
    return verify([claim], painter)[0]


def sentences(verdict: Verdict) -> str:
    return "\n".join(str(item) for item in verdict.reasons)


def test_a_grid_is_identical_in_one_batch(
    painter: DiffusersBackend, grid: tuple[Claim, ...]
) -> None:
    """Four pictures of one grid cost one grid, and every bit is equal."""
    watch = SilentWatch()
    verdicts = verify(grid, painter, watch=watch)
    assert [verdict.verdict for verdict in verdicts] == ["identical"] * 4
    assert all(each.comparison and each.comparison.is_identical for each in verdicts)
    assert watch.steps == [(1, 3), (2, 3), (3, 3)]


def test_one_altered_pixel_is_found_and_said(
    painter: DiffusersBackend, grid: tuple[Claim, ...]
) -> None:
    """One step of one colour of one pixel is an edit, which no tolerance excuses."""
    pixels = grid[0].pixels.copy()
    pixels[5, 7, 1] ^= 1
    verdict = verify_one(painter, replace(grid[0], pixels=pixels))
    assert verdict.verdict == "altered"
    assert verdict.comparison
    assert verdict.comparison.where == Box(left=7, top=5, width=1, height=1)
    assert (verdict.comparison.max_abs_diff, verdict.comparison.differing_pixels) == (1, 1)
    assert "changed after the picture was made" in sentences(verdict)
    assert "made again, bit for bit" in sentences(verdict)


def test_other_threads_are_restored(
    painter: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """A picture made on three threads is made on three threads again."""
    claims = paint_claims(painter, model_folder("ddim"), Placement(threads=3))
    verdict = verify_one(painter, claims[0])
    assert verdict.verdict == "identical"
    assert "threads 3" in sentences(verdict)
    assert verdict.passport is not None
    assert verdict.passport.threads == 3


def test_threads_beyond_what_a_machine_bears_are_said_and_not_restored(
    painter: DiffusersBackend, grid: tuple[Claim, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passport of 255 threads, which anybody can write, kept two cores busy for minutes."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    pixels = grid[0].pixels.copy()
    pixels[5, 7] ^= 64
    passport = grid[0].passport.model_copy(update={"threads": 17})
    claim = claim_of("forged", pixels, grid[0].recipe, passport)
    verdict = verify_one(painter, claim)
    assert verdict.verdict == "drifted"
    assert verdict.passport is not None
    assert verdict.passport.threads < 17
    assert "threads" in sentences(verdict)


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        (replace(PLACEMENT, channels_last=True), "channels last"),
        (replace(PLACEMENT, attention="math"), "attention math"),
        (replace(PLACEMENT, vae_slicing=True), "vae slicing"),
        (replace(PLACEMENT, switches=(("onednn_matmul_precision", "bf16"),)), "bf16"),
    ],
)
def test_what_changes_bits_is_restored(
    painter: DiffusersBackend, sd: Path, placement: Placement, words: str
) -> None:
    """Memory format, attention, slicing and precision come from the passport."""
    claims = paint_claims(painter, sd, placement, determinism="off")
    verdict = verify_one(painter, claims[0])
    assert verdict.verdict == "identical"
    assert words in sentences(verdict)


def test_a_picture_is_not_blamed_for_what_its_slot_did(
    painter: DiffusersBackend, sd: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the lock does not hold, a lone picture may come out otherwise, and that is said."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path))  # Others have found this model tight.
    recipe = recipes_for(painter, sd)[0]
    with monkeypatch.context() as planted:
        pipeline = painter.load(recipe, PLACEMENT)
        leak(pipeline, planted)
        claims = paint_claims(painter, sd, PLACEMENT)
        verdicts = [verify_one(painter, claim) for claim in claims]
        assert {verdict.verdict for verdict in verify(claims, painter)} == {"identical"}
    for verdict in verdicts:
        assert verdict.verdict == "drifted"
        assert "depends on its neighbours" in sentences(verdict)


def leak(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Let a tenth of every neighbour into what the denoiser says."""
    original = pipeline.unet.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        output = original(*args, **kwargs)
        return (output[0] + output[0].mean(dim=0) / 10, *output[1:])

    patch.setattr(pipeline.unet, "forward", forward)


def test_other_instructions_are_a_named_difference(
    painter: DiffusersBackend, sd: Path, tmp_path: Path
) -> None:
    """Libraries read their limits once: pictures made under others are close, and say why."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from pictures import make_lineage\n"
        "from seedgrid.core.picture import Picture\n"
        "from seedgrid.formats import png\n"
        "from test_verify import *\n"
        "painter = DiffusersBackend()\n"
        "claim = paint_claims(painter, Path(sys.argv[3]), PLACEMENT)[0]\n"
        "Path(sys.argv[4]).write_bytes(png.encode(Picture(pixels=claim.pixels,\n"
        "    recipe=claim.recipe, passport=claim.passport, lineage=make_lineage())))\n"
    )
    tests = Path(__file__).parent
    path = tmp_path / "limited.png"
    # Another one than this process has itself.
    limit = "avx2" if os.environ.get("ATEN_CPU_CAPABILITY") == "default" else "default"
    environment = os.environ | {"ATEN_CPU_CAPABILITY": limit}
    run_python("-W", "ignore", "-c", program, tests, tests.parent, sd, path, env=environment)
    claim = read_claim(path)
    assert claim.passport.cpu_capability == limit.upper()
    verdict = verify_one(painter, claim)
    assert verdict.holds, sentences(verdict)
    if verdict.verdict == "close":
        assert limit.upper() in sentences(verdict)


def test_a_missing_model_is_impossible(
    painter: DiffusersBackend, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Nothing is fetched and nothing else is used instead."""
    copy = Path(shutil.copytree(model_folder("ddpm"), tmp_path / "soon gone"))
    claim = paint_claims(painter, copy, PLACEMENT)[0]
    shutil.rmtree(copy)
    fresh = DiffusersBackend()
    verdict = verify_one(fresh, claim)
    assert verdict.verdict == "impossible"
    assert "soon gone" in sentences(verdict)


def test_a_missing_device_is_impossible_unless_another_is_asked_for(
    painter: DiffusersBackend, grid: tuple[Claim, ...]
) -> None:
    """A picture from an XPU is not quietly computed on a CPU."""
    passport = grid[0].passport.model_copy(update={"device": "xpu:0", "device_name": "Arc"})
    claim = replace(grid[0], passport=passport)
    assert verify_one(painter, claim).verdict == "impossible"
    assert verify([claim], painter, device="cpu")[0].verdict == "identical"


def test_a_passport_from_a_stranger_can_do_no_harm(
    painter: DiffusersBackend, grid: tuple[Claim, ...]
) -> None:
    """Absurd values are left out, not obeyed."""
    strange = Passport(
        threads=10**9,
        attention="<script>",
        offload="everywhere",
        precision={"matmul_precision": "; rm -rf /", "nonsense": "x"},
        determinism={"cudnn_benchmark": "perhaps", "deterministic_algorithms": "99"},
        instruction_limits={"LD_PRELOAD": "evil.so", "MKL_CBWR": "$(evil)"}
        | grid[0].passport.instruction_limits,  # else another processor would be restored
        cpu_capability=grid[0].passport.cpu_capability,
    )
    with one_thread():
        verdict = verify_one(painter, replace(grid[0], passport=strange))
    assert verdict.verdict == "identical"


def test_a_fragile_kind_of_model_is_named(
    painter: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """UnCLIP reproduces only on the same hardware and versions, so a drift says that."""
    claim = paint_claims(painter, model_folder("stable-unclip"), PLACEMENT)[0]
    assert verify_one(painter, claim).verdict == "identical"
    other = replace(claim, recipe=claim.recipe.replace(seed=5))
    assert "same hardware" in sentences(verify_one(painter, other))


def test_one_picture_does_not_stop_those_of_its_batch(painter: DiffusersBackend, sd: Path) -> None:
    """Words that cannot be weighed share a batch with honest pictures: each has its own verdict."""
    claims = paint_claims(painter, sd, PLACEMENT, num_inference_steps=1)
    weighed = [replace(each, recipe=each.recipe.replace(weights=True)) for each in claims]
    bad = weighed[1].recipe.replace(prompt="a (red:9) fox")
    claims = (weighed[0], replace(weighed[1], recipe=bad), *weighed[2:])
    verdicts = verify(claims, painter)
    words = [verdict.verdict for verdict in verdicts]
    assert words == ["identical", "impossible", "identical", "identical"]
    assert "cannot count 9 times" in sentences(verdicts[1])


def test_comparison_counts_pixels_not_colours() -> None:
    """Two colours of one pixel are one differing pixel; the largest difference is of a colour."""
    one = np.zeros((4, 4, 3), np.uint8)
    other = one.copy()
    other[0, 0] = (1, 3, 0)
    comparison = compare_pixels(one, other)
    assert comparison is not None
    assert (comparison.max_abs_diff, comparison.differing_pixels) == (3, 1)
    assert comparison.psnr_db == pytest.approx(10 * np.log10(255**2 / (10 / 48)), abs=0.01)
