"""Upscaler networks on this machine: safetensors files, by name and by content.

A network is found by file, by the name of one that was used before, or by name in the folders
`upscalers` of the bundled model and of `SEEDGRID_MODELS`. A recipe holds its name and digest, never
a path. Its architecture is detected when it is loaded. Needs no torch.

    take_upscaler(Path("4x-foxes.safetensors"))   # Upscaler(id='4x-foxes', …)
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import Upscaler
from seedgrid.core.variables import is_offered, models_folders
from seedgrid.models.digests import file_digest
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.shelf import BUNDLED, Shelf, bundled_folder, own_folder

FOLDER: Final = "upscalers"

_MAX_TENSORS: Final = 20_000
"""The largest known networks have about 3,000; spandrel's detection takes longer with more."""
_COLOURS: Final = 3


def find_upscaler(name: str) -> Upscaler:
    """Find a network by its name; paths are not read.

    Raises:
        InputError: `upscaler_missing`, or `upscaler_not_offered` on a public page.
        ModelError: `upscaler_damaged`.
    """
    check_offered(name)
    return _named(_SHELF.find(name))


def take_upscaler(path: Path) -> Upscaler:
    """Remember a file by its name; see `Shelf.take`.

    Raises:
        InputError: `upscaler_missing`.
        ModelError: `upscaler_damaged`: it is no safetensors file of a network.
    """
    return _named(_SHELF.take(path))


def known_upscalers() -> tuple[str, ...]:
    """Return the names of the networks for any model, sorted; on a public page those offered."""
    names = {path.stem for path in _SHELF.all() if path.parent != _own_folder()}
    return tuple(sorted((name for name in names if is_offered(name)), key=str.casefold))


def check_offered(name: str) -> None:
    """Refuse a network that a public page does not offer, whether it is here or not."""
    is_own = name in {path.stem for path in _own_folder().glob(f"*{SUFFIX}")}
    if not is_offered(name, *([BUNDLED] if is_own else [])):
        raise InputError("upscaler_not_offered", field="upscaler", value=name[:80])


def recorded_upscaler(upscaler: Upscaler) -> Path:
    """Return the file of a recipe's network; see `Shelf.recorded`.

    Raises:
        InputError: `upscaler_missing`.
        ModelError: `upscaler_changed`: the name now has other weights.
    """
    return _SHELF.recorded(upscaler.id, upscaler.weights_sha256)


def needs_spandrel(upscaler: Upscaler) -> bool:
    """Tell whether a network needs the library spandrel: all but Compact ones (`compact_scale`)."""
    path = recorded_upscaler(upscaler)
    return compact_scale(read_header(path, path.name)) is None


def _folders() -> list[Path]:
    return [*(root / FOLDER for root in (*models_folders(), own_folder())), _own_folder()]


def _own_folder() -> Path:
    """Return the folder of the bundled model's own network."""
    return bundled_folder() / FOLDER


def _is_network(header: Mapping[str, Any]) -> bool:
    """Tell by a header whether a file can be a network; empty tensors are refused."""
    has_empty = any(0 in entry["shape"] for entry in header.values())
    return 0 < len(header) <= _MAX_TENSORS and not is_lora(header) and not has_empty


_SHELF: Final = Shelf(kind="upscaler", field="upscaler", folders=_folders, fits=_is_network)


def _named(path: Path) -> Upscaler:
    return Upscaler(id=path.stem, weights_sha256=file_digest(path))


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
