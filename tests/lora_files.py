"""Small files that look like LoRAs from outside: the right names of tensors, and what they say."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

TENSOR = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.lora_down.weight"


def lora_bytes(metadata: Mapping[str, object] | None = None, tensor: str = TENSOR) -> bytes:
    """Return a safetensors file with one small tensor."""
    header = {tensor: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    table = json.dumps(({"__metadata__": dict(metadata)} if metadata else {}) | header).encode()
    return struct.pack("<Q", len(table)) + table + bytes(4)
