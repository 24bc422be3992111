"""LoRAs of which diffusers would leave a part out: refused by the part's name, never painted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import diffusers
import pytest
import torch
from lora_files import kohya_layer, save_lora
from painting import PLACEMENT

from seedgrid.core.errors import InputError
from seedgrid.diffusion.loras import lost_tensors
from seedgrid.studio import Studio

pytest.importorskip("peft")

Weights = dict[str, torch.Tensor]
SD_LAYER = "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q"
NUM_SD = 32
FLUX_LAYER = "lora_unet_double_blocks_0_img_attn_proj"


def lost(folder: Path, path: Path, weights: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
    """Load a LoRA as diffusers' documentation does it, and say what of it is not there."""
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder)
    save_lora(weights, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe.load_lora_weights(path.parent, weight_name=path.name, adapter_name="lora_0")
    return lost_tensors(pipe, path, "lora_0")


def sd_lora(**more: torch.Tensor) -> Weights:
    """Return a LoRA of Stable Diffusion in kohya's names, and other weights of its first layer."""
    return kohya_layer(SD_LAYER, NUM_SD, NUM_SD) | {
        f"{SD_LAYER}.{name}": tensor for name, tensor in more.items()
    }


@pytest.fixture(scope="module")
def one_layer_more() -> Weights:
    """The numbers of a layer once more, in one that the model has not."""
    weights = sd_lora()
    return weights | {name.replace("attn1", "attn7"): each for name, each in weights.items()}


def test_what_arrives_whole_is_not_missed(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Also in half precision, and with zeros where the model has no layer."""
    more = {name.replace("attn1", "attn7"): each * 0 for name, each in sd_lora().items()}
    halves = {name: each.half() for name, each in (sd_lora() | more).items()}
    assert lost(model_folder("sd"), tmp_path / "a.safetensors", halves) == ()


def test_layers_that_the_model_has_not_are_named(
    model_folder: Callable[[str], Path], tmp_path: Path, one_layer_more: Weights
) -> None:
    """Although the same numbers stand in another layer."""
    found = lost(model_folder("sd"), tmp_path / "a.safetensors", one_layer_more)
    assert found == tuple(
        f"{SD_LAYER.replace('attn1', 'attn7')}.lora_{way}.weight" for way in ("down", "up")
    )


def test_kinds_that_are_filtered_out_are_named(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """A DoRA of kohya's; of Flux also a bias, and a layer that loses its way in the conversion.

    Three parts of one weight, as Flux has them, are no loss.
    """
    dora = sd_lora(dora_scale=torch.ones(NUM_SD, 1))
    found = lost(model_folder("sd"), tmp_path / "dora.safetensors", dora)
    assert found == (f"{SD_LAYER}.dora_scale",)
    fused = kohya_layer(FLUX_LAYER.replace("proj", "qkv"), 32, 96)
    assert lost(model_folder("flux"), tmp_path / "fused.safetensors", fused) == ()
    more = {f"{FLUX_LAYER}.diff_b": torch.ones(32)}
    more |= kohya_layer("lora_unet_final_layer_linear", 32, 64)
    found = lost(model_folder("flux"), tmp_path / "more.safetensors", fused | more)
    assert found == (
        f"{FLUX_LAYER}.diff_b",
        "lora_unet_final_layer_linear.lora_down.weight",
        "lora_unet_final_layer_linear.lora_up.weight",
    )


def test_a_lora_that_fits_in_part_is_refused(
    model_folder: Callable[[str], Path], tmp_path: Path, one_layer_more: Weights
) -> None:
    """With one sentence that names it and the weight; the same without that layer is painted."""
    path = save_lora(one_layer_more, tmp_path / "foxes.safetensors")
    whole = save_lora(sd_lora(), tmp_path / "whole.safetensors")
    with Studio(str(model_folder("sd")), tmp_path / "library", placement=PLACEMENT) as studio:
        with pytest.raises(InputError) as caught:
            studio.grid("a fox", "0", loras=[str(path)], width=64, num_inference_steps=1)
        assert caught.value.code == "lora_partly"
        assert "foxes" in str(caught.value)
        assert "attn7" in str(caught.value)
        assert studio.grid("a fox", "0", loras=[str(whole)], width=64, num_inference_steps=1)
