"""Upscaler networks on this machine: safetensors files, by name and by content.

One is a file, the name of one that was used before, or of one in the folder `upscalers` of the
bundled model, or of the folders of `SEEDGRID_MODELS`. A recipe holds its name and digest, never a
path. What a network is, is found out when it is loaded. Needs no torch.

    take_upscaler(Path("4x-foxes.safetensors"))   # Upscaler(id='4x-foxes', …)
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Upscaler
from seedgrid.core.text import is_folder_name
from seedgrid.core.variables import is_offered, models_folders
from seedgrid.models.compact import compact_scale
from seedgrid.models.digests import file_digest
from seedgrid.models.files import SUFFIX, count_parameters, is_lora, read_header
from seedgrid.models.own import BUNDLED, bundled_folder, own_folder
from seedgrid.models.shelf import Shelf, with_digest

FOLDER: Final = "upscalers"

_KERNEL_DIMENSIONS: Final = 4
_MAX_TENSORS: Final = 20_000
"""The largest known have some 3,000; spandrel's time to look at them grows with their number."""
_COPIES: Final = 3
"""So many results of one layer were seen in memory together, at the most."""


def find_upscaler(name: str) -> Upscaler:
    """Find a network by its name; no path is followed here.

    Raises:
        InputError: `upscaler_missing`, or `upscaler_not_offered` on a public page.
        ModelError: `upscaler_damaged`.
    """
    check_offered(name)
    paths = _SHELF.paths(name)
    if not paths:
        raise InputError("upscaler_missing", field="upscaler", value=name[:80])
    return _checked(paths[0])


def take_upscaler(path: Path) -> Upscaler:
    """Make a file known by its name from now on.

    Raises:
        InputError: `upscaler_missing`.
        ModelError: `upscaler_damaged` for what is no safetensors file of a network.
    """
    path = path.expanduser().absolute()
    if path.suffix != SUFFIX or not path.is_file():
        raise InputError("upscaler_missing", field="upscaler", value=path.name[:80])
    found = _checked(path)
    _SHELF.keep(path)
    return found


def known_upscalers() -> tuple[str, ...]:
    """Return the networks on this machine that people may use with any model, in their order."""
    names = {path.stem for path in _SHELF.all() if path.parent != _own_folder()}
    return tuple(sorted((name for name in names if is_offered(name)), key=str.casefold))


def check_offered(name: str) -> None:
    """Refuse a network that a public page does not offer, whether it is here or not."""
    is_own = name in {path.stem for path in _own_folder().glob(f"*{SUFFIX}")}
    if not is_offered(name, *([BUNDLED] if is_own else [])):
        raise InputError("upscaler_not_offered", field="upscaler", value=name[:80])


def recorded_upscaler(upscaler: Upscaler, *, anew: bool = False) -> Path:
    """Return the very file that a recipe names: the same name and the same weights.

    Args:
        upscaler: As the recipe names it.
        anew: Read every byte, whatever is remembered of the files.

    Raises:
        InputError: `upscaler_missing`.
        ModelError: `upscaler_changed` when the name now means other weights.
    """
    paths = _SHELF.paths(upscaler.id)
    if not paths:
        raise InputError("upscaler_missing", field="upscaler", value=upscaler.id)
    path = with_digest(paths, upscaler.weights_sha256, anew=anew)
    if path is None:
        raise ModelError("upscaler_changed", value=upscaler.id)
    return path


def needed_bytes(upscaler: Upscaler, num_pixels: int) -> int:
    """Return about how much memory a network takes at its peak for so many pixels that it gives.

    Its weights, and the results of its widest layer, in float32.
    """
    path = recorded_upscaler(upscaler)
    header = read_header(path, path.name)
    shapes = [entry["shape"] for entry in header.values()]
    widest = max((int(s[0]) for s in shapes if len(s) == _KERNEL_DIMENSIONS), default=1)
    weights = count_parameters(header)
    return 4 * (weights + _COPIES * widest * num_pixels)


def needs_spandrel(upscaler: Upscaler) -> bool:
    """Tell whether a network is of a kind that torch alone does not compute (`models.compact`)."""
    path = recorded_upscaler(upscaler)
    return compact_scale(read_header(path, path.name)) is None


def _folders() -> list[Path]:
    return [*(root / FOLDER for root in (*models_folders(), own_folder())), _own_folder()]


def _own_folder() -> Path:
    """Return where the bundled model has a network of its own."""
    return bundled_folder() / FOLDER


_SHELF: Final = Shelf(kind="upscalers", folders=_folders)


def _checked(path: Path) -> Upscaler:
    try:
        header = read_header(path, path.name)
    except ModelError as error:
        raise ModelError("upscaler_damaged", value=path.name) from error
    is_network = 0 < len(header) <= _MAX_TENSORS and not is_lora(header)
    if not is_network or _has_empty(header) or not is_folder_name(path.stem):
        raise ModelError("upscaler_damaged", value=path.name)
    return Upscaler(id=path.stem, weights_sha256=file_digest(path))


def _has_empty(header: Mapping[str, Any]) -> bool:
    """Tell whether a tensor has no values: its shape may then say anything, and a layer follow."""
    return any(0 in entry["shape"] for entry in header.values())
