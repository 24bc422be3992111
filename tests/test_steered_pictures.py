"""Steered pictures as people make them: command line, Python, library, verify, script, bundle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ROOT, run_python
from painting import PLACEMENT, check_bundle_reproduced, check_script_reproduced
from PIL import Image
from refusing import refused
from sweeping import rest_swept

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Entry
from seedgrid.export.bundle import write_bundle
from seedgrid.formats import png
from seedgrid.formats.own_texts import parameters_text
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.studio import Studio
from seedgrid.verify.claim import read_claim
from seedgrid.verify.verifying import verify

SMALL: dict[str, Any] = {"width": 64, "height": 64, "num_inference_steps": 6}


def a_mask(path: Path, size: tuple[int, int] = (64, 64)) -> Path:
    """Write a mask whose left half is white, on a layer that is empty beside it."""
    mask = np.zeros((size[1], size[0]), np.uint8)
    mask[:, : size[0] // 2] = 255
    Image.merge("LA", [Image.fromarray(mask)] * 2).save(path)
    return path


@pytest.fixture(scope="module")
def studio(sd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    library = tmp_path_factory.mktemp("steered") / "library"
    with Studio(str(sd), library, placement=PLACEMENT) as studio:
        yield studio


@pytest.fixture(scope="module")
def made(studio: Studio, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    """A picture, one that holds its steps, one of a region of that, and one with spread."""
    mask = a_mask(tmp_path_factory.mktemp("masks") / "mask.png", (32, 32))
    grid = studio.grid("a red fox", "4-7", **SMALL)
    held = studio.refine(grid[2], [", at night", ", neon", "hold 0.2, x"], hold=0.5)
    here = studio.refine(held[0], [", snow"], only=mask, feather=3)
    assert [notice.code for notice in here.notices] == ["mask_fitted"]
    both = studio.refine(here[0], [", fog"], hold=0.4, only=np.eye(64, dtype=bool), feather=0)
    spread = studio.grid("a red fox", "6", spread=0.5, **SMALL)
    return {
        "parent": grid[2],
        "held": held[0],
        "shorter": held[2],
        "here": here[0],
        "both": both[0],
        "spread": spread[0],
    }


def pixels(entry: Entry) -> Any:
    return png.read_pixels(entry.path)


def test_they_are_what_was_asked_for(made: dict[str, Entry]) -> None:
    """Recipes say it, the change says it, and outside a region nothing changed."""
    assert made["held"].recipe.held_steps == 3
    assert made["shorter"].recipe.held_steps == 1
    assert made["held"].lineage.change == ", at night, hold 0.5"
    assert made["here"].lineage.change == ", snow, only here"
    np.testing.assert_array_equal(pixels(made["here"])[:, 32:], pixels(made["held"])[:, 32:])
    assert np.any(pixels(made["here"])[:, :32] != pixels(made["held"])[:, :32])
    eye = np.eye(64, dtype=bool)
    np.testing.assert_array_equal(pixels(made["both"])[~eye], pixels(made["here"])[~eye])
    assert len({each.pixels_sha256 for each in made.values()}) == 6


@pytest.mark.sweep
def test_each_is_verified_in_a_new_process(sd: Path, made: dict[str, Entry]) -> None:
    """Its parents are painted before it; of a region the pixels around it are counted."""
    environment = os.environ | {
        "SEEDGRID_LIBRARY": str(made["held"].path.parents[2]),
        "SEEDGRID_MODELS": str(sd.parent),
        "OMP_NUM_THREADS": "1",
    }
    paths = [each.path for each in made.values()]
    done = run_python("-m", "seedgrid", "verify", *paths, env=environment)
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if ".png" in line}
    assert {line.split()[0] for line in lines.values()} == {"identical"}, done.stdout + done.stderr
    around = "outside the region every pixel is the parent’s"
    assert f"{around} (2048 of 2048)" in lines[str(made["here"].path)]
    assert f"{around} (4032 of 4032)" in lines[str(made["both"].path)]
    assert around not in lines[str(made["held"].path)]


def test_a_pixel_around_the_region_that_changed_is_told(
    studio: Studio, made: dict[str, Entry]
) -> None:
    """Verify counts it."""
    claim = read_claim(made["here"].path)
    touched = pixels(made["here"]).copy()
    touched[5, 60] ^= 1
    (verdict,) = verify([replace(claim, pixels=touched)], studio.backend)  # type: ignore[arg-type] # one painter
    assert verdict.verdict == "altered"
    assert "outside the region 1 pixels are not the parent’s" in map(str, verdict.reasons)


@pytest.mark.parametrize("kind", rest_swept(["script", "bundle"], ["bundle"]))
def test_plain_diffusers_makes_them_again(
    sd: Path, made: dict[str, Entry], tmp_path: Path, kind: str
) -> None:
    """The script alone, and the bundle in a folder of its own."""
    write_bundle(list(made.values()), tmp_path / "art.zip", model=sd)
    if kind == "script":
        check_script_reproduced(list(made.values()), tmp_path, sd)
        return
    names = check_bundle_reproduced(tmp_path / "art.zip")
    assert len([name for name in names if name.startswith("starts/")]) == 2


@pytest.mark.sweep
def test_a_portable_script_steers_too(sd: Path, studio: Studio, tmp_path: Path) -> None:
    """With the arithmetic of SeedGrid, in a batch that is wider than the one that painted."""
    small = SMALL | {"num_inference_steps": 4}
    (parent,) = studio.grid("a fox", "3", portable=True, **small)
    mask = a_mask(tmp_path / "mask.png")
    made = studio.refine(parent, [", neon"], hold=0.5, only=mask)
    spread = studio.grid("a fox", "3", portable=True, spread=0.3, **small)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    check_script_reproduced([*made, *spread], tmp_path, sd, env=environment)


def test_a_bundle_brings_its_masks(made: dict[str, Entry], sd: Path, tmp_path: Path) -> None:
    """Taken in elsewhere, a picture of a region can be painted again."""
    write_bundle([made["here"]], tmp_path / "art.zip", model=sd)
    library = Library(tmp_path / "elsewhere")
    list(take_in(library, [tmp_path / "art.zip"]))
    assert (library.starts / f"{made['here'].recipe.mask}.png").is_file()


def test_other_tools_are_told_the_words_of_held_steps(made: dict[str, Entry]) -> None:
    """As `[from:to:steps]` where words allow it; a region is not written so."""
    first = parameters_text(made["held"].recipe).splitlines()[0]
    assert first == "[a red fox:a red fox, at night:3]"
    assert parameters_text(made["here"].recipe).startswith("a red fox, at night, snow\n")


@pytest.mark.sweep
def test_the_command_line_steers(sd: Path, tmp_path: Path) -> None:
    """`grid --spread`, `refine --hold --only --feather`, lines of holds, `show`; JSON says it."""

    def run(*arguments: str, code: int = 0) -> tuple[list[dict[str, Any]], str]:
        places = {"SEEDGRID_LIBRARY": str(tmp_path / "library"), "SEEDGRID_MODEL": str(sd)}
        done = run_python("-m", "seedgrid", *arguments, code=code, env=os.environ | places)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    small = ["--size", "64x64", "--steps", "5", "--json"]
    (spread,), _ = run("grid", "a fox", "--seeds", "3", "--spread", "0.2", *small)
    assert spread["spread"] == 0.2
    mask = str(a_mask(tmp_path / "mask.png"))
    (held, here), _ = run(
        *["refine", spread["path"], "--vary", "hold 0.4, at night", "--vary", ", neon"],
        *["--only", mask, "--feather", "2", "--json"],
    )
    assert (held["held_steps"], here.get("held_steps")) == (2, None)
    assert held["mask"] == here["mask"]
    (shown,), _ = run("show", held["path"], "--json")
    assert shown["recipe"]["parent"]["spread"] == 0.2
    Image.new("L", (64, 64)).save(tmp_path / "black.png")
    _, told = run(
        *["refine", spread["path"], "--only", str(tmp_path / "black.png"), "--json"], code=2
    )
    assert "Nothing of the mask is white" in told
    _, told = run("refine", spread["path"], "--hold", "0.9", code=2)
    assert "from 0 to 0.8" in told


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"only": np.ones((64, 64), bool)}, "mask_full"),
        ({"only": np.zeros((9, 9, 3), np.uint8)}, "mask_empty"),
        ({"only": np.eye(64, dtype=bool), "feather": 9999}, "feather_range"),
        ({"feather": 3}, "feather_alone"),
        ({"hold": 0.4, "suffixes": ["steps 9"]}, "way_settings"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    studio: Studio, made: dict[str, Entry], how: dict[str, Any], code: str
) -> None:
    """Before anything is painted."""
    with refused(InputError, code):
        studio.refine(made["parent"], **how)


def test_a_final_of_a_steered_picture_follows_nobody(
    studio: Studio, made: dict[str, Entry]
) -> None:
    """It begins from the pixels, which hold what was steered."""
    run = studio.start_final(made["here"], strengths=[0.5])
    recipe = run.jobs[0].recipe
    run.cancel()
    assert recipe.parent is None
    assert recipe.start == made["here"].pixels_sha256


def test_they_are_remembered(studio: Studio, made: dict[str, Entry]) -> None:
    """The same refinement is known, and nobody paints it again."""
    run = studio.start_refine(made["parent"], [", at night"], hold=0.5)
    assert run.result()[0].pixels_sha256 == made["held"].pixels_sha256
    assert run.num_remembered == 1
