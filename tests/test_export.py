"""The exported script makes the very pictures with nothing but diffusers; the bundle holds all."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from command import run_python
from pictures import as_entry, make_lineage, make_picture
from refusing import refused

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Entry, Picture
from seedgrid.core.recipe import NoiseShare, Passport, Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Placement, Unwatched
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.export import bundle as bundles
from seedgrid.export import script as single
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.models.families import FAMILIES, family_of


def paint(painter: DiffusersBackend, library: Library, recipes: Sequence[Recipe]) -> list[Entry]:
    """Paint recipes of one batch for real and keep them."""
    placement = Placement(device="cpu", previews=False)
    passport = painter.prepare(recipes[0], placement)
    pixels = painter.paint(recipes, placement, Unwatched())
    return [
        library.add(
            Picture(pixels=picture, recipe=recipe, passport=passport, lineage=make_lineage())
        )
        for picture, recipe in zip(pixels, recipes, strict=True)
    ]


def run_scripts(folder: Path, scripts: Sequence[tuple[Path, Sequence[str]]]) -> str:
    """Run scripts in one new process that can import nothing of ours, and return what they say.

    Each is told where its models are; nothing leaves it to find that out.
    """
    driver = ["import runpy, sys", "sys.modules['seedgrid'] = None"]
    for path, models in scripts:
        told = [str(path), *(word for model in models for word in ("--model", model))]
        driver += [
            f"sys.argv = {told!r}",
            "try:",
            f"    runpy.run_path({str(path)!r}, run_name='__main__')",
            "except SystemExit as end:",
            "    print('exit', end.code)",
        ]
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return run_python("-c", "\n".join(driver), cwd=folder, env=elsewhere).stdout


def write_script(folder: Path, entries: Sequence[Entry]) -> Path:
    ids = "-".join(entry.id[:8] for entry in entries)
    path = folder / f"reproduce-{ids}-{entries[0].recipe.seed}.py"
    path.write_text(single.script(entries), encoding="utf-8")
    return path


@pytest.mark.sweep
def test_the_script_repeats_every_kind_of_pipeline_and_finds_a_wrong_one(
    painter: DiffusersBackend, library: Library, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Prompts and none, negatives and none, odd sizes of batch, schedulers that draw again.

    Grid and noise mix of the real model too; and, unpacked, a bundle with its model needs no word
    about where the model is. Of several models each is told by its name, and asked for.
    """
    request = Request(prompt="a red fox", seeds=(7,), num_inference_steps=2, lock_width=2)
    mixed = replace(request, noise_mix=(NoiseShare(seed=9, weight=0.2),))
    card = painter.card("bundled")
    entries = paint(painter, library, resolve(request, card) + resolve(mixed, card))
    model = str(Path(__file__).parents[1] / "assets" / "model")
    scripts: list[tuple[Path, Sequence[str]]] = [(write_script(tmp_path, entries), [model])]
    of_both, told = list(entries[:1]), [f"bundled={model}"]
    for name, changes in {
        "sd": {"scheduler": "DPM++ 2M SDE Karras", "negative_prompt": "blur", "seeds": (1, 2, 3)},
        "sdxl": {"scheduler": "Euler a", "seeds": (1, 2)},
        "flux": {"seeds": (5,), "noise_mix": (NoiseShare(seed=2, weight=0.5),)},
        "pixart": {"seeds": (6, 6)},
        "ddpm": {"seeds": (8, 9)},
    }.items():
        folder = model_folder(name)
        card = painter.card(str(folder))
        request = Request(prompt="a fox", num_inference_steps=2, **changes)
        entries = paint(painter, library, resolve(request, card))
        scripts.append((write_script(tmp_path, entries), [str(folder)]))
        if name == "flux":
            of_both, told = [*of_both, *entries], [*told, f"{folder.name}={folder}"]
        if name == "sd":
            bundles.write_bundle(entries, tmp_path / "art.zip", model=folder)
            with zipfile.ZipFile(tmp_path / "art.zip") as bundle:
                bundle.extractall(tmp_path / "art")
            scripts.append((tmp_path / "art" / "reproduce.py", []))
    both = write_script(tmp_path, of_both)
    scripts += [(both, told), (both, told[1:])]
    # The last one lies about its seed: it must be found out.
    wrong = replace(entries[0], recipe=entries[0].recipe.replace(seed=2))
    scripts.append((write_script(tmp_path, [wrong]), [str(folder)]))

    said = run_scripts(tmp_path, scripts)

    assert said.count("identical  seed 7") == 3, said
    assert said.count("all identical\nexit 0\n") == len(scripts) - 2, said
    assert "DIFFERENT  seed 2" in said
    assert said.endswith("1 different\nexit 1\n"), said
    assert said.count("exit 2\n") == 1, said


def test_the_script_knows_what_the_backend_knows_of_families() -> None:
    """Tables of sizes, and in which families words are read alone."""
    names: dict[str, object] = {}
    program = single.script([as_entry(make_picture())])
    begin, end = program.index("SIZES_WITH_BINS = "), program.index("# cuBLAS")
    exec(program[begin:end], names)  # noqa: S102 - tables of the script's

    families = [family_of(name) for name in FAMILIES]
    binned = {each.pipeline: each.binned_sizes for each in families if each.binned_sizes}
    assert names["SIZES_WITH_BINS"] == binned
    assert set(names["READ_ALONE"]) == {each.pipeline for each in families if each.embeds_names}


def test_requirements_are_pinned_to_what_computed() -> None:
    """A local build's suffix is left out, since no index has it."""
    passports = (
        Passport(torch="2.9.1+cpu", diffusers="0.38.0", transformers="4.51.0"),
        Passport(torch="2.13.0+cpu", diffusers="0.42.1", transformers="5.1.0"),
    )

    assert single.requirements(passports).split() == [
        "torch==2.13.0",
        "diffusers==0.42.1",
        "transformers==5.1.0",
    ]
    computed = [Passport(peft="0.21.2"), Passport(spandrel="0.4.2", peft="0.20.0; sh")]
    assert single.requirements(computed, "peft", "spandrel").split()[-2:] == [
        "peft==0.21.2",
        "spandrel==0.4.2",
    ]
    assert single.requirements(computed[1:], "peft").split()[-1] == "peft>=0.18"


def test_a_bundle_holds_all_and_comes_in_again(library: Library, tmp_path: Path) -> None:
    """Pictures byte by byte, recipes, passports, script and pins; another library takes it in."""
    entries = [library.add(make_picture(seed=seed)) for seed in range(3)]
    model = tmp_path / "model"
    (model / "unet").mkdir(parents=True)
    (model / "unet" / "config.json").write_text("{}")

    bundles.write_bundle(entries, tmp_path / "art.zip", model=model)

    with zipfile.ZipFile(tmp_path / "art.zip") as bundle:
        names = set(bundle.namelist())
        recipes = json.loads(bundle.read("recipes.json"))
        kept = [bundle.read(recipe["picture"]) for recipe in recipes]
        assert bundle.testzip() is None
    assert names >= {
        *("reproduce.py", "requirements.txt", "README.txt", "passports.json"),
        "model/unet/config.json",
    }
    assert kept == [entry.path.read_bytes() for entry in entries]
    read = [Recipe.model_validate_json(json.dumps(recipe["recipe"])) for recipe in recipes]
    assert read == [entry.recipe for entry in entries]
    another = Library(tmp_path / "another")
    taken = list(take_in(another, [tmp_path / "art.zip"]))
    assert {one.entry.id for one in taken if one.entry} == {entry.id for entry in entries}


def test_our_own_model_is_in_the_bundle(
    painter: DiffusersBackend, library: Library, tmp_path: Path
) -> None:
    """Nobody can fetch it by its name; one that has changed since would only mislead."""
    ref = painter.card("bundled").ref
    changed = ref.model_copy(update={"weights_sha256": "ab" * 32})

    for model, is_inside in ((ref, True), (changed, False)):
        bundles.write_bundle([library.add(make_picture(model=model))], tmp_path / "art.zip")

        with zipfile.ZipFile(tmp_path / "art.zip") as bundle:
            assert ("model/model_index.json" in bundle.namelist()) == is_inside
            readme = bundle.read("README.txt").decode()
        assert ("--model FOLDER" in readme) == (not is_inside)


def test_equal_bundles_are_equal_files(library: Library, tmp_path: Path) -> None:
    """Nothing in a bundle depends on when or where it was written."""
    entry = library.add(make_picture())

    for name in ("first.zip", "second.zip"):
        bundles.write_bundle([entry], tmp_path / name)

    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_a_bundle_is_whole_or_not_there(library: Library, tmp_path: Path) -> None:
    """A missing picture is told, and no half bundle is left behind."""
    entries = [library.add(make_picture(seed=seed)) for seed in range(2)]
    entries[1].path.unlink()

    with refused(LibraryError, "picture_lost"):
        bundles.write_bundle(entries, tmp_path / "art.zip")

    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_what_cannot_be_exported_is_told() -> None:
    """No picture, a scheduler of another release: each has its sentence."""
    for entries, code in (
        ([], "export_nothing"),
        ([as_entry(make_picture(scheduler="Nonsense"))], "scheduler_unknown"),
    ):
        with refused(InputError, code):
            single.script(entries)


def test_the_script_names_nothing_of_ours() -> None:
    """Its imports are the standard library, torch, diffusers, transformers, NumPy and Pillow."""
    program = single.script([as_entry(make_picture())])
    imported = {line.split()[1].split(".")[0] for line in program.split("\n") if is_import(line)}

    assert imported - sys.stdlib_module_names == {
        *("PIL", "diffusers", "numpy", "torch", "transformers")
    }


def is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))
