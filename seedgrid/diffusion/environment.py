"""Fill in a Passport: all that was measured to change bits, as it is in force at this moment.

Call it inside the determinism context and with the thread count in place, or it describes another
computation. What each field changed is measured in docs/log.md. Knows nothing of recipes' words.
"""

import os
import platform
from functools import cache
from importlib.metadata import version
from typing import Final

import torch

import seedgrid
from seedgrid.core.recipe import Passport
from seedgrid.diffusion import determinism, processor
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.processor import processor_name

# Libraries read them once, at their start; what is set later is not in force.
_LIMITS_AT_START: Final = processor.limits_in_force(os.environ)


def current_passport(
    device: torch.device, placement: Placement, has_loras: bool = False, quantiser: str = ""
) -> Passport:
    """Describe the computation that would run now; with libraries that only some pictures need."""
    switches = determinism.in_force()
    precision = {name: state for name, state in switches.items() if "precision" in name}
    precision["cudnn_tf32"] = switches.pop("cudnn_tf32")
    passport = Passport(
        seedgrid=seedgrid.__version__,
        python=platform.python_version(),
        torch=str(torch.__version__),
        diffusers=_version_of("diffusers"),
        transformers=_version_of("transformers"),
        device=str(device),
        device_name=device_name(device),
        driver=_driver(device),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        instruction_limits=_LIMITS_AT_START,
        threads=torch.get_num_threads(),
        precision=precision,
        attention=_attention(placement),
        memory_format="channels_last" if placement.channels_last else "contiguous",
        offload=placement.offload,
        vae_slicing=placement.vae_slicing,
        vae_tiling=placement.vae_tiling,
        determinism={name: state for name, state in switches.items() if name not in precision},
    )
    extras = {"peft": _version_of("peft")} if has_loras else {}
    extras |= {quantiser: _version_of(quantiser)} if quantiser else {}
    return passport.model_copy(update=extras)


def device_name(device: torch.device) -> str:
    """Return the hardware's own name: the GPU's, or the processor's."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "xpu":
        return str(torch.xpu.get_device_name(device))
    return processor_name()


@cache
def _version_of(library: str) -> str:
    """Read it once: each time is milliseconds, of the fifty in which a known grid is shown."""
    return version(library)


def _driver(device: torch.device) -> str:
    """Return what the device's own libraries are: CUDA and cuDNN, or the CPU's oneDNN."""
    if device.type == "cuda":
        return f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    if device.type == "xpu":
        return f"XPU {torch.version.xpu}"
    if device.type == "mps":
        return f"macOS {platform.mac_ver()[0]}"
    return "oneDNN on" if torch.backends.mkldnn.is_available() else "oneDNN off"


def _attention(placement: Placement) -> str:
    """Return the attention asked for, and which of torch's kernels may answer."""
    cuda = torch.backends.cuda
    kernels = {
        "flash": cuda.flash_sdp_enabled(),
        "efficient": cuda.mem_efficient_sdp_enabled(),
        "math": cuda.math_sdp_enabled(),
        "cudnn": cuda.cudnn_sdp_enabled(),
    }
    enabled = "+".join(name for name, on in kernels.items() if on)
    return f"{placement.attention} ({enabled})"
