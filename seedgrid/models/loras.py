"""Low-rank adaptations (LoRAs) on this machine: safetensors files, by name and by content.

A LoRA is a file, the name of one that was used before, was given to SeedGrid, or lies in one of
the folders of `SEEDGRID_MODELS` or in `loras` there, or the hub id it was fetched by. A recipe
holds its name and digest, never a path. What does not fit a model is found out when it is loaded.
Needs no torch.

    find_lora("fox").sha256
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Lora
from seedgrid.core.text import is_hub_id
from seedgrid.core.variables import is_offered, models_folders
from seedgrid.models.digests import file_digest
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.own import LORAS, own_folder
from seedgrid.models.shelf import Shelf, with_digest
from seedgrid.storage.cache import recall, remember_one

_SOURCES: Final = "lora_sources"


@dataclass(frozen=True, kw_only=True)
class LoraFile:
    """A LoRA that is on this machine."""

    id: str
    path: Path

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file."""
        return file_digest(self.path)


def find_lora(name: str) -> LoraFile:
    """Find a LoRA by its name, or by its hub id; no path is followed here.

    Raises:
        InputError: `lora_missing` or `lora_not_downloaded`, by the prompt, where it was named;
            `lora_not_offered`.
        ModelError: `lora_damaged`.
    """
    if is_hub_id(name):
        fetched = [known for known, said in recall(_SOURCES).items() if said == name]
        if not fetched:
            raise InputError("lora_not_downloaded", field="prompt", value=name)
        name = fetched[-1]
    check_offered(name)
    paths = _SHELF.paths(name)
    if not paths:
        raise InputError("lora_missing", field="prompt", value=name[:80])
    return _checked(paths[0])


def check_offered(name: str) -> None:
    """Refuse a LoRA that the owner of a public page does not offer, whether it is here or not."""
    name = name.removesuffix(SUFFIX)
    if not is_offered(name, source_of(name)):
        raise InputError("lora_not_offered", field="prompt", value=name[:80])


def take_lora(path: Path) -> LoraFile:
    """Make a file known by its name from now on.

    Raises:
        ModelError: `lora_missing`; `lora_damaged` for what is no safetensors file of a LoRA.
    """
    path = path.expanduser().absolute()
    if path.suffix != SUFFIX or not path.is_file():
        raise ModelError("lora_missing", value=path.name[:80])
    found = _checked(path)
    _SHELF.keep(path)
    return found


def known_loras() -> tuple[Path, ...]:
    """Return the LoRAs on this machine, each name once, in order of their names."""
    found: dict[str, Path] = {}
    for path in _SHELF.all():
        if path.stem not in found and may_be_lora(path):
            found[path.stem] = path
    return tuple(found[name] for name in sorted(found, key=str.casefold))


def may_be_lora(path: Path) -> bool:
    """Tell whether a path is a whole safetensors file that holds a LoRA."""
    if path.suffix != SUFFIX or not path.is_file():
        return False
    try:
        return is_lora(read_header(path, path.name))
    except ModelError:
        return False


def keep_source(name: str, hub_id: str) -> None:
    """Remember that a LoRA came from the hub, so that its id there finds it too."""
    remember_one(_SOURCES, name, hub_id)


def source_of(name: str) -> str:
    """Return the hub id that a LoRA was fetched by; empty where it came otherwise."""
    said = recall(_SOURCES).get(name)
    return said if isinstance(said, str) else ""


def recorded_lora(lora: Lora, *, anew: bool = False) -> Path:
    """Return the very file that a recipe names: the same name and the same weights."""
    paths = _SHELF.paths(lora.id)
    if not paths:
        raise ModelError("lora_missing", value=lora.id)
    path = with_digest(paths, lora.weights_sha256, anew=anew)
    if path is None:
        raise ModelError("lora_changed", value=lora.id)
    return path


def _folders() -> list[Path]:
    return [place for root in (*models_folders(), own_folder()) for place in (root / LORAS, root)]


_SHELF: Final = Shelf(kind="loras", folders=_folders)


def _checked(path: Path) -> LoraFile:
    try:
        header = read_header(path, path.name)
    except ModelError as error:
        raise ModelError("lora_damaged", value=path.name) from error
    if not is_lora(header):
        raise ModelError("lora_damaged", value=path.name)
    return LoraFile(id=path.stem, path=path)
