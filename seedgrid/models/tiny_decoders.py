"""Tiny decoders: small networks that replace a model's own decoder in live pictures.

Each fits one kind of VAE, identified by its channels and scaling factor. The models panel downloads
it into the hub's cache. Needs no torch.

    decoder_for(registry.find("sd").files.configs)   # "madebyollin/taesd", or ""
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from seedgrid.core.errors import ModelError
from seedgrid.models.hub import TINY_FILES, repository_folder

TINY_DECODERS: Final = {
    (4, 0.18215): "madebyollin/taesd",
    (4, 0.13025): "madebyollin/taesdxl",
    (16, 1.5305): "madebyollin/taesd3",
    (16, 0.3611): "madebyollin/taef1",
}
"""By a VAE's latent channels and scaling factor: Stable Diffusion, SDXL, SD 3, FLUX.1.

Source: https://github.com/madebyollin/taesd
"""


def decoder_for(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the hub id of the tiny decoder for a model; empty if there is none."""
    vae = configs.get("vae", {})
    if vae.get("_class_name") != "AutoencoderKL":
        return ""
    kind = vae.get("latent_channels", 4), vae.get("scaling_factor", 0.18215)
    return TINY_DECODERS.get(kind, "")


def is_decoder_here(name: str) -> bool:
    """Tell whether a tiny decoder is downloaded."""
    return bool(_snapshots(name))


def decoder_folder(name: str) -> Path:
    """Return the newest folder of a tiny decoder.

    Raises:
        ModelError: `model_not_downloaded`.
    """
    found = _snapshots(name)
    if not found:
        raise ModelError("model_not_downloaded", value=name)
    return found[-1]


def _snapshots(name: str) -> list[Path]:
    snapshots = repository_folder(name).glob("snapshots/*")
    whole = [path for path in snapshots if all((path / file).is_file() for file in TINY_FILES)]
    return sorted(whole, key=lambda path: path.stat().st_mtime)
