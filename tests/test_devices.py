"""Devices: what was asked for or an error that says what there is; number formats; placement."""

from __future__ import annotations

from pathlib import Path

import diffusers
import pytest
import torch
from refusing import refused

from seedgrid.core.errors import DeviceError
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.loading import move_to_device, pick_device
from seedgrid.models.cards import choose_dtype

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:99", "xpu:7", "tpu", "", "meta", "cpu:1"])
def test_a_device_that_is_not_there_is_an_error_that_lists_what_is(name: str) -> None:
    """There is no fallback in silence: the message names the device and the choices."""
    with pytest.raises(DeviceError, match="cpu") as caught:
        pick_device(name)
    assert caught.value.data["value"] == name


@pytest.mark.parametrize("offload", ["model", "group", "sequential"])
def test_offload_needs_somewhere_to_load_onto(sd: Path, offload: str) -> None:
    """On a CPU there is nothing to move weights to, and saying nothing would be a lie."""
    pipeline = diffusers.DiffusionPipeline.from_pretrained(sd)
    with refused(DeviceError, "offload_needs_gpu"):
        move_to_device(pipeline, CPU, Placement(offload=offload))  # type: ignore[arg-type]


def test_placement_reaches_the_pipeline(sd: Path) -> None:
    """Slicing, tiling and the memory format are really set."""
    pipeline = diffusers.DiffusionPipeline.from_pretrained(sd)
    move_to_device(pipeline, CPU, Placement(vae_slicing=True, vae_tiling=True, channels_last=True))
    assert pipeline.vae.use_slicing
    assert pipeline.vae.use_tiling
    weight = pipeline.unet.conv_in.weight
    assert weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("device_type", "num_parameters", "dtype"),
    [
        ("cpu", 860_000_000, "float32"),
        ("mps", 860_000_000, "float32"),
        ("cuda", 860_000_000, "bfloat16"),
        ("cuda", 12_000_000, "float32"),
    ],
)
def test_the_number_format_suits_device_and_model(
    device_type: str, num_parameters: int, dtype: str
) -> None:
    """16 bits where they help: a big model on a GPU that has the units for it."""
    assert choose_dtype(device_type, num_parameters) == dtype
