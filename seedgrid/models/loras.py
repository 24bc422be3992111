"""Low-rank adaptations (LoRAs) on this machine: safetensors files, by name and by content.

A LoRA is a file, or the name of one that was used before or lies in one of the folders of
`SEEDGRID_MODELS` or in `loras` there. A recipe holds its name and digest, never a path. What does
not fit a model is found out when it is loaded. Needs no torch.

    find_lora("fox").sha256
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.names import is_folder_name
from seedgrid.core.recipe import Lora
from seedgrid.core.variables import models_folders
from seedgrid.models.digests import file_digest
from seedgrid.models.files import read_header
from seedgrid.storage.cache import recall_texts, remember_one

SUFFIX: Final = ".safetensors"
FOLDER: Final = "loras"

_PLACES: Final = "loras"
_MARKS: Final = ("lora", "lokr", "hada")
"""One of these is in a tensor's name; a whole model has none."""


@dataclass(frozen=True, kw_only=True)
class LoraFile:
    """A LoRA that is on this machine.

    Attributes:
        id: What recipes call it: the file's name without its ending.
    """

    id: str
    path: Path

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file."""
        return file_digest(self.path)


def find_lora(name: str) -> LoraFile:
    """Find a LoRA by its name; no path is followed here.

    Raises:
        InputError: `lora_missing`, by the prompt, where it was named.
        ModelError: `lora_damaged`.
    """
    for path in _known(name):
        if path.is_file():
            return _checked(path)
    raise InputError("lora_missing", field="prompt", value=name[:80])


def take_lora(path: Path) -> LoraFile:
    """Make a file known by its name from now on.

    Raises:
        ModelError: `lora_missing`; `lora_damaged` for what is no safetensors file of a LoRA.
    """
    path = path.expanduser().absolute()
    if path.suffix != SUFFIX or not path.is_file():
        raise ModelError("lora_missing", value=path.name[:80])
    found = _checked(path)
    known = [place for place in recall_texts(_PLACES).get(found.id, []) if place != str(path)]
    remember_one(_PLACES, found.id, [str(path), *known])
    return found


def recorded_lora(lora: Lora) -> Path:
    """Return the very file that a recipe names: the same name and the same weights.

    Raises:
        ModelError: `lora_missing`, or `lora_changed` when the name now means other weights.
    """
    paths = [path for path in _known(lora.id) if path.is_file()]
    if not paths:
        raise ModelError("lora_missing", value=lora.id)
    for path in paths:
        if file_digest(path) == lora.weights_sha256:
            return path
    raise ModelError("lora_changed", value=lora.id)


def _known(name: str) -> list[Path]:
    if not is_folder_name(name):
        return []
    folders = [place for root in models_folders() for place in (root / FOLDER, root)]
    file = name if name.endswith(SUFFIX) else f"{name}{SUFFIX}"
    used = [Path(place) for place in recall_texts(_PLACES).get(name.removesuffix(SUFFIX), [])]
    return used + [folder / file for folder in folders]


def _checked(path: Path) -> LoraFile:
    try:
        header = read_header(path, path.name)
    except ModelError as error:
        raise ModelError("lora_damaged", value=path.name) from error
    if not any(mark in name.lower() for name in header for mark in _MARKS):
        raise ModelError("lora_damaged", value=path.name)
    return LoraFile(id=path.stem, path=path)
