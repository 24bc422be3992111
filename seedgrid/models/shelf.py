"""Folders of models, LoRAs and upscaler networks, and finding files by name.

A recipe holds a name and a digest, never a path. A name finds files that were used under it before,
the newest first, then those in the folders of their kind. SeedGrid deletes only files that it
downloaded or was given. Needs no torch.

    SHELF = Shelf(kind="lora", field="prompt", folders=lambda: [Path("loras")], fits=is_lora)
    SHELF.find("fox")   # PosixPath('loras/fox.safetensors')
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import platformdirs

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.text import is_folder_name
from seedgrid.models.digests import file_digest
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.single_file import configuration_source
from seedgrid.storage.cache import recall_texts, remember_one
from seedgrid.storage.files import assets_folder, make_folder, size_of

BUNDLED: Final = "bundled"
"""The name of the bundled model in recipes."""

LORAS: Final = "loras"
"""The folder of LoRAs, inside the folder of models."""


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """The .safetensors files of one kind."""

    # Prefix of the errors `KIND_missing`, `KIND_damaged` and `KIND_changed`, and of the cache's key
    kind: str
    field: str
    folders: Callable[[], Iterable[Path]]  # Returns the folders of such files
    fits: Callable[[Mapping[str, Any]], bool]  # Tells by a file's header whether it is of this kind

    def find(self, name: str) -> Path:
        """Return the file of a name; paths are not read.

        Raises:
            InputError: `KIND_missing`.
            ModelError: `KIND_damaged`.
        """
        return self._checked(self._paths(name)[0])

    def take(self, path: Path) -> Path:
        """Remember a file by its name, and return its absolute path.

        Raises:
            InputError: `KIND_missing`.
            ModelError: `KIND_damaged`: it is no safetensors file of this kind.
        """
        path = path.expanduser().absolute()
        if path.suffix != SUFFIX or not path.is_file():
            raise InputError(f"{self.kind}_missing", field=self.field, value=path.name[:80])
        self._checked(path)
        others = [str(each) for each in self._used(path.stem) if each != path]
        remember_one(self._remembered, path.stem, [str(path), *others])
        return path

    def recorded(self, name: str, sha256: str) -> Path:
        """Return the file of a recipe: the same name and the same weights.

        Raises:
            InputError: `KIND_missing`.
            ModelError: `KIND_changed`: the name now has other weights.
        """
        for path in self._paths(name):
            if file_digest(path) == sha256:
                return path
        raise ModelError(f"{self.kind}_changed", value=name)

    def all(self) -> Iterator[Path]:
        """Return every file, those used before first; names may repeat."""
        used = (path for name in recall_texts(self._remembered) for path in self._used(name))
        lying = (path for folder in self.folders() for path in folder.glob(f"*{SUFFIX}"))
        return (path for path in (*used, *lying) if path.is_file())

    @property
    def _remembered(self) -> str:
        return f"{self.kind}s"

    def _paths(self, name: str) -> list[Path]:
        """Return the files of a name, which is one path segment, with or without its suffix."""
        found: list[Path] = []
        if is_folder_name(name):
            stem = name.removesuffix(SUFFIX)
            lying = (folder / f"{stem}{SUFFIX}" for folder in self.folders())
            found = [path for path in (*self._used(stem), *lying) if path.is_file()]
        if not found:
            raise InputError(f"{self.kind}_missing", field=self.field, value=name[:80])
        return found

    def _used(self, name: str) -> list[Path]:
        return [Path(place) for place in recall_texts(self._remembered).get(name, [])]

    def _checked(self, path: Path) -> Path:
        try:
            is_fitting = self.fits(read_header(path, path.name))
        except ModelError as error:
            raise ModelError(f"{self.kind}_damaged", value=path.name) from error
        if not is_fitting or not is_folder_name(path.stem):
            raise ModelError(f"{self.kind}_damaged", value=path.name)
        return path


def own_folder() -> Path:
    """Return the folder of models that were dropped or downloaded as files."""
    return Path(platformdirs.user_data_dir("seedgrid", appauthor=False)) / "models"


def bundled_folder() -> Path:
    """Return the folder of the bundled model: `SEEDGRID_BUNDLED`, the checkout's or package's."""
    named = os.environ.get("SEEDGRID_BUNDLED")
    return Path(named) if named else assets_folder() / "model"


def is_own(path: Path) -> bool:
    """Tell whether SeedGrid may delete a file or folder."""
    return own_folder() in path.parents


def place_for(name: str) -> Path:
    """Return the path for a new file of a name.

    Raises:
        ModelError: `model_name`: it is no name of a .safetensors file; `model_there`: it exists
            already.
        LibraryError: The folder cannot be made.
    """
    if not is_folder_name(name) or not name.endswith(SUFFIX):
        raise ModelError("model_name", value=name[:80])
    if any((folder / name).exists() for folder in (own_folder(), own_folder() / LORAS)):
        raise ModelError("model_there", value=name)
    make_folder(own_folder())
    return own_folder() / name


@contextlib.contextmanager
def taking(name: str) -> Iterator[Path]:
    """Give a path to write a .safetensors file to, which is kept when the block ends.

    LoRAs are recognised by their tensors and kept in their own folder.

    Raises:
        ModelError: As `place_for`; `model_damaged` or `model_unrecognised`: it is neither a LoRA
            nor a model of a known family, and is not kept.
        LibraryError: The folder cannot be made.
    """
    place = place_for(name)
    aside = own_folder() / f".{secrets.token_hex(8)}"
    aside.mkdir()
    try:
        yield aside / name
        if is_lora(read_header(aside / name, name)):
            place = own_folder() / LORAS / name
            make_folder(place.parent)
        else:
            configuration_source(aside / name)
        (aside / name).replace(place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def delete_own(path: Path) -> int:
    """Delete a file or folder of SeedGrid's and return the freed bytes."""
    freed = size_of(path)
    if path.is_dir():
        shutil.rmtree(path)
        return freed
    path.unlink()
    beside = path.with_suffix("")
    return freed + (delete_own(beside) if beside.is_dir() else 0)
