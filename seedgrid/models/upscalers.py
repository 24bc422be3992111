"""Upscaler networks on this machine: safetensors files, by name and by content.

A network is found by file, by the name of one that was used before, or by name in the folders
`upscalers` of the bundled model and of `SEEDGRID_MODELS`. Its architecture is detected when it is
loaded. Needs no torch.

    take_upscaler(Path("4x-foxes.safetensors"))   # Upscaler(id='4x-foxes', …)
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from seedgrid.core.recipe import Upscaler
from seedgrid.core.variables import is_offered, models_folders
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.shelf import BUNDLED, Shelf, bundled_folder, own_folder

_FOLDER: Final = "upscalers"
_MAX_TENSORS: Final = 20_000
"""The largest known networks have about 3,000; spandrel's detection takes longer with more."""
_COLOURS: Final = 3


def _bundled() -> Path:
    return bundled_folder() / _FOLDER


def _folders() -> list[Path]:
    return [*(root / _FOLDER for root in (*models_folders(), own_folder())), _bundled()]


def _names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob(f"*{SUFFIX}")}


def _is_network(header: Mapping[str, Any]) -> bool:
    """Tell by a header whether a file can be a network; empty tensors are refused."""
    has_empty = any(0 in entry["shape"] for entry in header.values())
    return 0 < len(header) <= _MAX_TENSORS and not is_lora(header) and not has_empty


_SHELF: Final = Shelf(
    kind="upscaler",
    field="upscaler",
    make=Upscaler,
    folders=_folders,
    fits=_is_network,
    alias=lambda name: BUNDLED if name in _names(_bundled()) else "",
)

find_upscaler = _SHELF.find
take_upscaler = _SHELF.take
recorded_upscaler = _SHELF.recorded
check_offered = _SHELF.check_offered


def known_upscalers() -> tuple[str, ...]:
    """Return the names of the networks for any model, sorted; on a public page those offered."""
    names = {path.stem for path in _SHELF.all() if path.parent != _bundled()}
    return tuple(sorted(filter(is_offered, names), key=str.casefold))


def needs_spandrel(upscaler: Upscaler) -> bool:
    """Tell whether a network needs the library spandrel: all but Compact ones (`compact_scale`)."""
    path = recorded_upscaler(upscaler)
    return compact_scale(read_header(path, path.name)) is None


def compact_scale(header: Mapping[str, Any]) -> int | None:
    """Return the scale of a Compact network; None if it is another architecture."""
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
    given = shapes.get("body.0.weight", ())
    num_layers = len([name for name in shapes if name.endswith(".weight")])
    (colours, *_) = (*shapes.get(f"body.{num_layers - 1}.bias", ()), 0)
    scale = math.isqrt(colours // _COLOURS)
    if not given or colours != _COLOURS * scale**2 or scale < 1:
        return None
    return scale if shapes == _shapes(num_layers, given[0], colours) else None


def _shapes(num_layers: int, width: int, colours: int) -> dict[str, tuple[int, ...]]:
    """Return a Compact network's tensors: convolutions, with PReLU slopes between them."""
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
