"""A whole model in one .safetensors file, as model sites publish them. Needs no torch.

Such a file has only weights. Configurations and tokenizer come from a folder of the same name
beside it (`fox.safetensors`, `fox/model_index.json`), else from a repository of its family in the
hub's cache; the names of the tensors tell the family.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from seedgrid.core.errors import ModelError
from seedgrid.models.files import ModelFiles, count_parameters, read_folder, read_header

_SD3: Final = "model.diffusion_model.joint_blocks."
_CONFIGURATIONS: Final = {
    "conditioner.embedders.1.": "stabilityai/stable-diffusion-xl-base-1.0",
    "cond_stage_model.transformer.": "stable-diffusion-v1-5/stable-diffusion-v1-5",
    f"{_SD3}37.": "stabilityai/stable-diffusion-3.5-large",
    f"{_SD3}0.x_block.attn2.": "stabilityai/stable-diffusion-3.5-medium",
    _SD3: "stabilityai/stable-diffusion-3-medium-diffusers",
}
"""Hub repositories with configurations, by a prefix of tensor names; the first match counts."""
_OPTIONAL_ENCODERS: Final = {
    "text_encoders.clip_l.": "text_encoder",
    "text_encoders.clip_g.": "text_encoder_2",
    "text_encoders.t5xxl.": "text_encoder_3",
}
"""Text encoders that a single file of Stable Diffusion 3 may lack, by tensor prefix."""


def configuration_source(path: Path) -> str | Path:
    """Return a single file's configurations: a folder beside it, or a hub id.

    Raises:
        ModelError: `model_damaged`, or `model_unrecognised` if no prefix matches.
    """
    header = read_header(path, path.name)
    beside = path.with_suffix("")
    if (beside / "model_index.json").is_file():
        return beside
    for prefix, hub_id in _CONFIGURATIONS.items():
        if any(name.startswith(prefix) for name in header):
            return hub_id
    raise ModelError("model_unrecognised", value=path.name)


def read_single_file(path: Path, configurations: Path) -> ModelFiles:
    """Read and check a single file.

    Raises:
        ModelError: As `read_folder`; `model_part` if a text encoder is missing.
    """
    files = read_folder(configurations, needs_weights=False)
    header = read_header(path, path.name)
    if any(name.startswith(_SD3) for name in header):
        for prefix, part in _OPTIONAL_ENCODERS.items():
            is_there = any(name.startswith(prefix) for name in header)
            if not is_there and part not in files.absent:
                raise ModelError("model_part", value=path.name, part=part)
    config_files = {
        f"configurations/{name}": file
        for name, file in files.files.items()
        if file.suffix != ".safetensors"
    }
    return replace(
        files,
        checkpoint=path,
        variant=None,
        files=config_files | {path.name: path},
        num_parameters=count_parameters(header),
    )
