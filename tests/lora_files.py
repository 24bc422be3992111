"""Small files that look like LoRAs from outside: the right names of tensors, and what they say."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save, save_file

TENSOR = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.lora_down.weight"


def lora_bytes(metadata: dict[str, str] | None = None, tensor: str = TENSOR) -> bytes:
    """Return a safetensors file with one small tensor."""
    return save({tensor: torch.zeros(1)}, metadata)


def kohya_layer(name: str, num_in: int, num_out: int, rank: int = 4) -> dict[str, torch.Tensor]:
    """Return the random weights of one layer as kohya's scripts name them, at half strength."""
    generator = torch.Generator("cpu").manual_seed(zlib.crc32(name.encode()))
    return {
        f"{name}.lora_down.weight": torch.randn(rank, num_in, generator=generator),
        f"{name}.lora_up.weight": torch.randn(num_out, rank, generator=generator),
        f"{name}.alpha": torch.tensor(rank / 2),
    }


def save_lora(weights: Mapping[str, torch.Tensor], path: Path) -> Path:
    """Write weights into a file; two names may share their numbers."""
    save_file({name: tensor.clone() for name, tensor in weights.items()}, path)
    return path
