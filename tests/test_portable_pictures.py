"""Portable pictures: the recipe says so, the batch does not matter, and nothing excuses another."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command import ROOT, run_python
from painting import PLACEMENT, check_script_reproduced, claim_of, paint, recipes_for
from pictures import as_entry, make_lineage
from refusing import refused
from watches import SilentWatch

from seedgrid.core.errors import InputError, RunError
from seedgrid.core.picture import Picture
from seedgrid.core.recipe import NoiseShare, Passport, Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.portable import selftest
from seedgrid.portable.rules import RULES
from seedgrid.portable.selftest import GOLDEN
from seedgrid.testing.fake import FakeBackend
from seedgrid.verify.verifying import verify
from tools.portable.child import pipeline_of, psnr_db
from tools.portable.sweep import Draw, call, draws


@pytest.fixture(scope="module")
def recipes(painter: DiffusersBackend, sd: Path) -> tuple[Recipe, ...]:
    """Four portable recipes of a small pipeline, one of them with two seeds' noise."""
    four = recipes_for(painter, sd, portable=True, scheduler="Euler a")
    mixed = four[1].replace(noise_mix=(NoiseShare(seed=9, weight=0.3),))
    return (four[0], mixed, *four[2:])


ELSEWHERE = Passport(torch="2.10.0", device="cpu", threads=3, cpu_capability="DEFAULT")
"""Another machine's."""


def test_portable_means_float32(backend: FakeBackend) -> None:
    """A half-precision model is read as float32; another format by name is a contradiction."""
    card = replace(backend.card(None), dtype="bfloat16")
    (recipe,) = resolve(Request(prompt="a fox", seeds=(1,), portable=True), card)
    assert (recipe.dtype, recipe.is_portable) == ("float32", True)
    with refused(InputError, "portable_dtype"):
        resolve(Request(prompt="a fox", portable=True, dtype="bfloat16"), card)


def test_picture_does_not_depend_on_its_batch(
    painter: DiffusersBackend, recipes: tuple[Recipe, ...]
) -> None:
    """Four together, two the other way round, one alone with previews: the same pixels."""
    together = paint(painter, recipes)
    turned = paint(painter, (recipes[3], recipes[1]))
    assert np.array_equal(turned[0], together[3])
    assert np.array_equal(turned[1], together[1])
    watch = SilentWatch(with_previews=True)
    (alone,) = painter.paint(recipes[1:2], PLACEMENT, watch)
    assert np.array_equal(alone, together[1])
    assert len(watch.previews) == recipes[0].num_inference_steps


def test_verify_knows_no_excuse(painter: DiffusersBackend, recipes: tuple[Recipe, ...]) -> None:
    """Identical whatever the passport says; one changed number is an alteration, not a rounding."""
    pictures = paint(painter, recipes[:2])
    edited = pictures[1].copy()
    edited[0, 0, 0] ^= 1
    told = zip((pictures[0], edited), recipes[:2], strict=True)
    same, other = verify([claim_of("picture", *each, ELSEWHERE) for each in told], painter)
    assert (same.verdict, same.reasons) == ("identical", ())
    assert other.verdict == "altered"
    assert [reason.code for reason in other.reasons] == ["portable_differs", "where"]


@pytest.mark.sweep
def test_the_script_of_a_portable_picture_says_that_it_needs_seedgrid(
    painter: DiffusersBackend, recipes: tuple[Recipe, ...], sd: Path, tmp_path: Path
) -> None:
    """With it, any width and any threads give the pictures again; without, one sentence."""
    entries = []
    for recipe, pixels in zip(recipes[:2], paint(painter, recipes[:2]), strict=True):
        picture = Picture(
            pixels=pixels, recipe=recipe, passport=Passport(device="cpu"), lineage=make_lineage()
        )
        entries.append(as_entry(picture))
    path = tmp_path / "reproduce.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    check_script_reproduced(entries, tmp_path, sd, env=environment)
    driver = f"import sys, runpy; sys.modules['seedgrid'] = None; runpy.run_path({str(path)!r})"
    assert "needs SeedGrid" in run_python("-c", driver, code=1).stderr


def test_verify_names_the_operation_that_has_no_rule(
    painter: DiffusersBackend, recipes: tuple[Recipe, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another release of a library may call what version 1 does not define."""
    monkeypatch.delitem(RULES, "silu")
    pixels = np.zeros((recipes[0].height, recipes[0].width, 3), np.uint8)
    (verdict,) = verify([claim_of("picture", pixels, recipes[0], ELSEWHERE)], painter)
    assert verdict.verdict == "impossible"
    assert "aten::silu" in str(verdict.reasons[0])


def test_a_machine_that_computes_otherwise_paints_no_portable_picture(
    painter: DiffusersBackend,
    recipes: tuple[Recipe, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The trial before the first one is remembered by passport; what it refuses has a sentence."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path / "wrong"))
    monkeypatch.setitem(GOLDEN, "silu", "0" * 64)
    with refused(RunError, "portable_wrong_here", match=r"\(silu\): nothing was painted"):
        paint(painter, recipes[:1])
    pixels = np.zeros((64, 64, 3), np.uint8)
    (verdict,) = verify([claim_of("picture", pixels, recipes[0], ELSEWHERE)], painter)
    assert (verdict.verdict, "silu" in str(verdict.reasons[0])) == ("impossible", True)
    monkeypatch.undo()
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path / "right"))
    paint(painter, recipes[:1])
    monkeypatch.setattr(selftest, "check", lambda _: ("tried again",))
    paint(painter, recipes[:1])
    with pytest.raises(RunError, match="tried again"):  # Another passport, another trial.
        painter.prepare(recipes[0], replace(PLACEMENT, attention="math"))


@pytest.mark.parametrize("draw", draws(3, seed=2), ids=str)
def test_a_random_recipe_has_one_picture(draw: Draw) -> None:
    """Alone and between neighbours; near the plain one. More of them: tools.portable sweep."""
    pipeline = pipeline_of(draw.family)
    alone, between = (call(pipeline, draw, some, is_portable=True) for some in ((0, 0), (2, 1)))
    assert torch.equal(alone, between)
    assert psnr_db(call(pipeline, draw, (0, 0), is_portable=False), alone) >= 65
