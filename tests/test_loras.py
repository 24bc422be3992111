"""LoRAs: parity with plain diffusers, scales as variations, misfits, export and verify."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from foreign_files import file_with
from lora_files import kohya_layer, save_lora
from painting import PLACEMENT, check_bundle_reproduced, claims_of, one_thread
from pictures import make_recipe
from refusing import refused
from sweeping import rest_swept

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import read_tags, write_tags
from seedgrid.core.recipe import Lora
from seedgrid.export.bundle import write_bundle
from seedgrid.formats.own_texts import parameters_text
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.models.loras import LORAS, find_lora
from seedgrid.studio import Studio
from seedgrid.verify.verifying import verify
from seedgrid.web.serializers.form import fields_of, write_fields

peft = pytest.importorskip("peft")

SMALL: dict[str, Any] = {"width": 64, "height": 64, "num_inference_steps": 2}
NAMES = ("sd", "sdxl", "sd3", "flux")


def make_lora(pipeline_folder: Path, path: Path, seed: int = 0) -> Path:
    """Write a LoRA with random weights that fits a pipeline, as training scripts do."""
    pipe = diffusers.DiffusionPipeline.from_pretrained(pipeline_folder)
    part = "unet" if hasattr(pipe, "unet") else "transformer"
    module = getattr(pipe, part)
    targets = ["to_q", "to_k", "to_v", "to_out.0"]
    module.add_adapter(peft.LoraConfig(r=4, lora_alpha=4, target_modules=targets))
    layers = peft.utils.get_peft_model_state_dict(module)
    generator = torch.Generator("cpu").manual_seed(seed)
    random = {
        name: torch.randn(layers[name].shape, generator=generator) * 0.3 for name in sorted(layers)
    }
    named = {f"{part}_lora_layers": random}
    type(pipe).save_lora_weights(path.parent, weight_name=path.name, **named)
    return path


@pytest.fixture(scope="module")
def lora(
    model_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, int], Path]:
    """Give a LoRA for one of the small pipelines, made once."""
    folder = tmp_path_factory.mktemp("loras")

    def give(name: str, seed: int = 0) -> Path:
        path = folder / f"{name}-{seed}.safetensors"
        return path if path.exists() else make_lora(model_folder(name), path, seed)

    return give


def plain_call(folder: Path, prompts: Sequence[str], files: Sequence[tuple[Path, float]]) -> Any:
    """Make four pictures with LoRAs as diffusers' documentation does it."""
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    names = [f"l{place}" for place in range(len(files))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft tells of each LoRA after the first.
        for name, (path, _) in zip(names, files, strict=True):
            pipe.load_lora_weights(path.parent, weight_name=path.name, adapter_name=name)
    if names:
        pipe.set_adapters(names, [scale for _, scale in files])
    generators = [torch.Generator("cpu").manual_seed(seed) for seed in range(4)]
    with one_thread():
        return pipe(list(prompts), generator=generators, **SMALL).images


@pytest.mark.parametrize("name", rest_swept(NAMES, ["sd", "flux"]))
def test_pictures_with_loras_equal_the_plain_call(
    tmp_path: Path, folder: Path, lora: Callable[[str, int], Path], name: str
) -> None:
    """Two at scales of their own, bit for bit; another picture than without."""
    files = [(lora(name, 0), 0.8), (lora(name, 1), -0.5)]
    with Studio(str(folder), tmp_path / "library", placement=PLACEMENT) as studio:
        guidance = 5.0 if name in ("sdxl",) else studio.card().guidance_scale
        named = [f"{path}={scale}" for path, scale in files]
        with_them = studio.grid("a fox", loras=named, guidance_scale=guidance, **SMALL)
        without = studio.grid("a fox", guidance_scale=guidance, **SMALL)
    plain = plain_call(folder, ["a fox"] * 4, files)
    for ours, theirs, bare in zip(with_them, plain, without, strict=True):
        np.testing.assert_array_equal(np.asarray(ours.image), np.asarray(theirs))
        assert not np.array_equal(np.asarray(ours.image), np.asarray(bare.image))


def test_scales_vary_on_one_seed_and_are_verified(
    sd_studio: Studio, lora: Callable[[str, int], Path], sd: Path
) -> None:
    """Named in the prompt, as other tools do; at scale 0 it is the picture without it."""
    path = LORAS.recorded(LORAS.add(lora("sd", 0)))
    grid = sd_studio.grid(f"a fox <lora:{path.stem}:0.8>", **SMALL)
    assert grid[0].prompt == "a fox"
    finals = sd_studio.refine(grid[3], ["lora 0", "lora 0.5", "lora 1.5"])
    changes = [final.lineage.change for final in finals]
    assert changes[1] == "lora 0.5"
    bare = sd_studio.grid("a fox", "3", **SMALL)[0]
    np.testing.assert_array_equal(np.asarray(finals[0].image), np.asarray(bare.image))
    plain = plain_call(sd, ["a fox"] * 4, [(path, 1.5)])
    np.testing.assert_array_equal(np.asarray(finals[2].image), np.asarray(plain[3]))
    verdicts = verify(claims_of(grid[1], *finals), sd_studio.backend)
    assert {found.verdict for found in verdicts} == {"identical"}
    assert f"<lora:{path.stem}:0.8>" in parameters_text(grid[0].recipe)


@pytest.mark.sweep
def test_a_bundle_brings_its_loras_along(
    sd_studio: Studio, lora: Callable[[str, int], Path], sd: Path, tmp_path: Path
) -> None:
    """Its script makes the pictures again with diffusers and peft alone."""
    grid = sd_studio.grid("a fox", "0-1", loras=[f"{lora('sd', 1)}=0.7"], **SMALL)
    write_bundle(list(grid), tmp_path / "art.zip", model=sd)
    check_bundle_reproduced(tmp_path / "art.zip")


def test_what_does_not_fit_is_refused(sd_studio: Studio, lora: Callable[[str, int], Path]) -> None:
    """A LoRA of another kind of model; one that is not here; a file that is none."""
    for named, code in (
        (str(lora("sd3", 0)), "lora_misfit"),
        (str(lora("sdxl", 0)), "lora_misfit"),
        ("nowhere", "lora_missing"),
        (f"{lora('sd', 0)}=9", "lora_scale"),
    ):
        with refused(InputError, code):
            sd_studio.grid("a fox", "0", loras=[named], **SMALL)


@pytest.mark.parametrize("wrong", ["attn7", "dora_scale"])
def test_what_fits_in_part_is_refused(sd_studio: Studio, tmp_path: Path, wrong: str) -> None:
    """A layer that the model has not, and a DoRA of kohya's: diffusers would leave them out."""
    layer = "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q"
    weights = kohya_layer(layer, 32, 32)
    whole = save_lora(weights, tmp_path / "whole.safetensors")
    if wrong == "attn7":
        weights |= {name.replace("attn1", "attn7"): each for name, each in weights.items()}
    else:
        weights[f"{layer}.dora_scale"] = torch.ones(32, 1)
    path = save_lora(weights, tmp_path / "foxes.safetensors")
    with refused(InputError, "lora_partly", match="foxes"):
        sd_studio.grid("a fox", "0", loras=[str(path)], **SMALL)
    assert sd_studio.grid("a fox", "0", loras=[str(whole)], **SMALL)


def test_tags_are_read_as_other_tools_write_them() -> None:
    """Anywhere in the prompt, with a scale or without; what is no tag stays a word."""
    assert read_tags("a fox <lora:snow:0.5>, red <LORA:ink>") == (
        "a fox, red",
        (("snow", 0.5), ("ink", 1.0)),
    )
    assert read_tags("a <lora> fox") == ("a <lora> fox", ())
    tagged = write_tags("a fox", (Lora(id="snow", weights_sha256="0" * 64, scale=0.5),))
    assert read_tags(tagged) == ("a fox", (("snow", 0.5),))


def test_a_name_never_leads_to_a_path(tmp_path: Path) -> None:
    """What a prompt or a stranger's link says is a name in known folders, and nothing else."""
    (tmp_path / "x.safetensors").write_bytes(b"")
    for name in (str(tmp_path / "x.safetensors"), "../x", "/etc/passwd", ""):
        with refused(InputError, "lora_missing"):
            find_lora(name)


def test_what_another_tool_named_is_taken_along(
    tmp_path: Path, lora: Callable[[str, int], Path]
) -> None:
    """AUTOMATIC1111's tag becomes ours where the file is known; the others are named."""
    known = LORAS.add(lora("sd", 0)).id
    words = f"a fox <lora:{known}:0.6> <lora:elsewhere:1>"
    file = file_with(parameters=f"{words}\nSteps: 20, Sampler: DDIM, CFG scale: 7, Seed: 4")
    (tmp_path / "a.png").write_bytes(file)
    library = Library(tmp_path / "library")
    (taken,) = take_in(library, [tmp_path / "a.png"])
    assert taken.imported is not None
    assert write_fields(taken.imported.request)["prompt"] == f"a fox <lora:{known}:0.6>"
    said = {reason.code: reason.data for reason in taken.imported.reasons}
    assert said["import_loras"] == {"value": "elsewhere"}


def test_each_prompt_of_a_work_is_shown_with_its_loras() -> None:
    """One with and one without, on the same words."""
    lora = Lora(id="foxes", weights_sha256="0" * 64, scale=0.8)
    shown = fields_of([make_recipe(), make_recipe(loras=(lora,))], (), None)
    assert (shown["prompt"], shown["more_prompts"]) == ("a red fox", "a red fox <lora:foxes:0.8>")
