"""The promise to strangers: a plain diffusers script in a new process makes the same bits.

`grid` and `refine` run as a user runs them, on the bundled model. The script below knows nothing
of SeedGrid: it reads the PNG's own JSON and calls diffusers.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command import ROOT, rows, run_python

SCRIPT = """
import hashlib, json, sys
import numpy as np, torch
from diffusers import DDIMScheduler, DiffusionPipeline
from PIL import Image

pipe = DiffusionPipeline.from_pretrained(sys.argv[1], torch_dtype=torch.float32)
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config)
for start in range(2, len(sys.argv), 4):
    recipes, hashes = [], []
    for path in sys.argv[start : start + 4]:
        with Image.open(path) as image:
            record = json.loads(image.text["seedgrid"])
        recipes.append(record["recipe"])
        hashes.append(record["pixels_sha256"])
        torch.set_num_threads(record["passport"]["threads"])
    assert {r["scheduler"] for r in recipes} == {"DDIM"}
    first = recipes[0]
    images = pipe(
        [r["prompt"] for r in recipes],
        negative_prompt=[r["negative_prompt"] for r in recipes],
        generator=[torch.Generator("cpu").manual_seed(r["seed"]) for r in recipes],
        width=first["width"],
        height=first["height"],
        num_inference_steps=first["num_inference_steps"],
        guidance_scale=first["guidance_scale"],
    ).images
    made = [hashlib.sha256(np.asarray(image).tobytes()).hexdigest() for image in images]
    print(json.dumps([made, hashes]))
"""


def run(*arguments: str, library: Path) -> list[dict[str, str]]:
    """Run the command line as a user does and return its JSON lines."""
    places = {"SEEDGRID_LIBRARY": str(library), "SEEDGRID_MODEL": "bundled"}
    done = run_python("-m", "seedgrid", *arguments, "--json", env=os.environ | places)
    assert done.stderr == ""
    return rows(done.stdout)


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """Four seeds, the third one picked, the guide's four variations of it."""
    folder = tmp_path_factory.mktemp("workflow")
    out = ["--out", str(folder / "out")]
    grid = run(
        *["grid", "Labrador in the style of Vermeer", "--seeds", "0-3", "--scheduler", "DDIM"],
        *["--steps", "3", *out],
        library=folder / "library",
    )
    finals = run("refine", grid[2]["path"], *out, library=folder / "library")
    return {"grid": grid, "finals": finals}


def test_the_workflow_makes_eight_pictures(workflow: dict[str, list[dict[str, str]]]) -> None:
    """Four seeds, then four prompts on the picked picture's seed; all eight differ."""
    assert [row["seed"] for row in workflow["grid"]] == [0, 1, 2, 3]
    assert [row["seed"] for row in workflow["finals"]] == [2, 2, 2, 2]
    made = workflow["grid"] + workflow["finals"]
    assert len({row["pixels_sha256"] for row in made}) == 8


def test_a_plain_diffusers_script_makes_the_same_bits(
    workflow: dict[str, list[dict[str, str]]],
) -> None:
    """Grid and refinement, in a new process, from nothing but the PNG files and the model."""
    paths = [row["path"] for part in ("grid", "finals") for row in workflow[part]]
    model = ROOT / "assets" / "model"
    done = run_python("-c", SCRIPT, model, *paths, cwd=Path(paths[0]).parent)
    grid, finals = map(json.loads, done.stdout.splitlines()[-2:])
    for made, recorded in (grid, finals):
        assert len(made) == 4
        assert made == recorded


@pytest.mark.sweep
def test_one_picture_alone_has_the_bits_of_the_grid(
    workflow: dict[str, list[dict[str, str]]], tmp_path: Path
) -> None:
    """A seed asked for alone, in a new process and library, is the grid's very picture."""
    (alone,) = run(
        *["grid", "Labrador in the style of Vermeer", "--seeds", "2", "--scheduler", "DDIM"],
        *["--steps", "3"],
        library=tmp_path,
    )
    assert alone["recipe_id"] == workflow["grid"][2]["recipe_id"]
    assert alone["pixels_sha256"] == workflow["grid"][2]["pixels_sha256"]
