"""Write a Stable Diffusion pipeline as one file with the names of the original implementation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

_RESNET = (
    ("norm1", "in_layers.0"),
    ("conv1", "in_layers.2"),
    ("norm2", "out_layers.0"),
    ("conv2", "out_layers.3"),
    ("time_emb_proj", "emb_layers.1"),
    ("conv_shortcut", "skip_connection"),
)
_UNET = (
    ("time_embedding.linear_1", "time_embed.0"),
    ("time_embedding.linear_2", "time_embed.2"),
    ("conv_in", "input_blocks.0.0"),
    ("conv_norm_out", "out.0"),
    ("conv_out", "out.2"),
    ("mid_block.attentions.0", "middle_block.1"),
    ("mid_block.resnets.0", "middle_block.0"),
    ("mid_block.resnets.1", "middle_block.2"),
)
_VAE = (
    (r"mid_block\.attentions\.0\.group_norm", "mid.attn_1.norm"),
    (r"mid_block\.attentions\.0\.to_out\.0", "mid.attn_1.proj_out"),
    (r"mid_block\.attentions\.0\.to_([qkv])", r"mid.attn_1.\1"),
    (r"mid_block\.resnets\.0", "mid.block_1"),
    (r"mid_block\.resnets\.1", "mid.block_2"),
    (r"conv_norm_out", "norm_out"),
    (r"conv_shortcut", "nin_shortcut"),
    (r"down_blocks\.(\d)\.resnets\.(\d)", r"down.\1.block.\2"),
    (r"down_blocks\.(\d)\.downsamplers\.0", r"down.\1.downsample"),
)


def save_single_file(pipeline: Any, path: Path) -> None:
    """Write a pipeline of two UNet blocks and one layer a block, as `pipelines.build("sd")` is."""
    tensors: dict[str, torch.Tensor] = {}
    for name, tensor in pipeline.unet.state_dict().items():
        tensors[f"model.diffusion_model.{_unet_name(name)}"] = tensor
    for name, tensor in pipeline.vae.state_dict().items():
        is_attention = re.search(r"attentions\.0\.to_.*weight", name) is not None
        value = tensor[:, :, None, None] if is_attention else tensor
        tensors[f"first_stage_model.{_vae_name(name)}"] = value
    for name, tensor in pipeline.text_encoder.state_dict().items():
        full = name if name.startswith("text_model.") else f"text_model.{name}"
        tensors[f"cond_stage_model.transformer.{full}"] = tensor
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def _unet_name(name: str) -> str:
    for ours, theirs in _UNET:
        if name.startswith(ours + "."):
            return _resnet_name(name.replace(ours, theirs, 1), name)
    block = re.match(r"(down|up)_blocks\.(\d)\.(\w+)\.(\d)\.(?:conv\.)?", name)
    assert block is not None, name
    direction, number, part, place = block[1], int(block[2]), block[3], int(block[4])
    rest = name[block.end() :]
    if direction == "down":
        index = 2 * number + place + 1 if part != "downsamplers" else 2 * number + 2
        prefix = f"input_blocks.{index}."
        middle = {"resnets": "0.", "attentions": "1.", "downsamplers": "0.op."}[part]
    else:
        index = 2 * number + place if part != "upsamplers" else 2 * number + 1
        prefix = f"output_blocks.{index}."
        after = "2" if number == 0 else "1"  # After the attention, which only block 0 has.
        middle = {"resnets": "0.", "attentions": "1.", "upsamplers": f"{after}.conv."}[part]
    return _resnet_name(prefix + middle + rest, name)


def _resnet_name(name: str, original: str) -> str:
    if "resnets" in original:
        for ours, theirs in _RESNET:
            name = name.replace(f".{ours}.", f".{theirs}.")
    return name


def _vae_name(name: str) -> str:
    for ours, theirs in _VAE:
        name = re.sub(ours, theirs, name)
    name = re.sub(
        r"up_blocks\.(\d)\.resnets\.(\d)", lambda m: f"up.{1 - int(m[1])}.block.{m[2]}", name
    )
    return re.sub(r"up_blocks\.(\d)\.upsamplers\.0", lambda m: f"up.{1 - int(m[1])}.upsample", name)
