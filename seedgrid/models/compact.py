"""A Compact network (SRVGGNetCompact) is known by the names and shapes of its tensors.

Needs no torch; `diffusion/upscaler_networks.py` computes what it is.

    compact_scale(read_header(path, path.name))   # 4; None for any other network's file
"""

import math
from collections.abc import Mapping
from typing import Any, Final

_COLOURS: Final = 3


def compact_scale(header: Mapping[str, Any]) -> int | None:
    """Return how many times as wide a Compact network makes a picture; None where it is another.

    Args:
        header: Of a safetensors file: its tensors by name, each with its `shape`.
    """
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
    given = shapes.get("body.0.weight", ())
    num_layers = len([name for name in shapes if name.endswith(".weight")])
    (colours, *_) = (*shapes.get(f"body.{num_layers - 1}.bias", ()), 0)
    scale = math.isqrt(colours // _COLOURS)
    if not given or colours != _COLOURS * scale**2 or scale < 1:
        return None
    return scale if shapes == _shapes(num_layers, given[0], colours) else None


def _shapes(num_layers: int, width: int, colours: int) -> dict[str, tuple[int, ...]]:
    """Return what such a file holds: convolutions, and between two of them a slope a channel."""
    shapes: dict[str, tuple[int, ...]] = {}
    last, before = num_layers - 1, _COLOURS
    for layer in range(0, num_layers, 2):
        after = colours if layer == last else width
        shapes[f"body.{layer}.weight"] = (after, before, 3, 3)
        shapes[f"body.{layer}.bias"] = (after,)
        if layer != last:
            shapes[f"body.{layer + 1}.weight"] = (after,)
        before = after
    return shapes
