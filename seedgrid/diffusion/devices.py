"""Which device computes, and how a model is placed on it, also one that is too big for it.

A device that is not there is an error that lists those that are, never a fallback.
"""

from typing import Any, cast

import torch

from seedgrid.core.errors import DeviceError
from seedgrid.core.recipe import DType
from seedgrid.diffusion.backend import DEVICE_KINDS, Offload, Placement


def available_devices() -> tuple[str, ...]:
    """Return this machine's devices in order of preference, for example `("cuda:0", "cpu")`."""
    names = (f"{kind}:{index}" for kind in DEVICE_KINDS for index in range(_count(kind)))
    return tuple({"mps:0": "mps", "cpu:0": "cpu"}.get(name, name) for name in names)


def pick_device(device: str) -> torch.device:
    """Return the device of a name, the best one for `"auto"`; raise `device_missing`."""
    names = available_devices()
    for name in names:
        if device in ("auto", name, name.partition(":")[0]):
            return torch.device(name)
    raise DeviceError("device_missing", value=device[:80], choices=", ".join(names))


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return torch's own object for the name of a number format."""
    return cast("torch.dtype", getattr(torch, dtype.removeprefix("int8-")))


def place(pipeline: Any, device: torch.device, placement: Placement) -> None:
    """Move a pipeline to its device, laid out and offloaded; raise `offload_needs_gpu`."""
    if placement.channels_last:
        for name in ("unet", "vae"):
            if (part := getattr(pipeline, name, None)) is not None:
                part.to(memory_format=torch.channels_last)
    vae = getattr(pipeline, "vae", None)
    if vae is not None and placement.vae_slicing:
        vae.enable_slicing()
    if vae is not None and placement.vae_tiling:
        vae.enable_tiling()
    if placement.attention == "sliced":
        pipeline.enable_attention_slicing()
    _offload(pipeline, device, placement.offload)


def empty_cache() -> None:
    """Return memory that torch keeps for later to the device."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if _count("xpu"):
        torch.xpu.empty_cache()
    if _count("mps"):
        torch.mps.empty_cache()


def _offload(pipeline: Any, device: torch.device, offload: Offload) -> None:
    if offload == "none":
        pipeline.to(device)
        return
    if device.type == "cpu":
        raise DeviceError("offload_needs_gpu", value=offload)
    if offload == "model":
        pipeline.enable_model_cpu_offload(device=device)
    elif offload == "sequential":
        pipeline.enable_sequential_cpu_offload(device=device)
    else:
        pipeline.enable_group_offload(
            onload_device=device,
            offload_device=torch.device("cpu"),
            offload_type="leaf_level",
        )


def _count(kind: str) -> int:
    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "xpu":
        return torch.xpu.device_count() if torch.xpu.is_available() else 0
    return int(kind == "cpu" or torch.backends.mps.is_available())
