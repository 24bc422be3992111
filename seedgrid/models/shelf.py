"""Where models, LoRAs and upscaler networks lie, and files that are called by their names.

A recipe holds a name and a digest, never a path. A name means the files that were used under it
before, the last one first, and those in the folders of their kind. What SeedGrid fetched or was
given it may delete; a folder that somebody keeps elsewhere it only forgets. No torch needed.

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
"""What recipes call the model that ships."""

LORAS: Final = "loras"
"""The folder of LoRAs, in that of models."""


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """The .safetensors files of one kind.

    Attributes:
        kind: Errors are called `KIND_missing`, `KIND_damaged` and `KIND_changed`; the cache
            remembers under it where files were used.
        folders: Where files may lie, asked each time.
        fits: Tells by its header whether a file is of this kind.
    """

    kind: str
    field: str
    folders: Callable[[], Iterable[Path]]
    fits: Callable[[Mapping[str, Any]], bool]

    def find(self, name: str) -> Path:
        """Return the file that is called so; no path is followed here.

        Raises:
            InputError: `KIND_missing`.
            ModelError: `KIND_damaged`.
        """
        return self._checked(self._paths(name)[0])

    def take(self, path: Path) -> Path:
        """Make a file known by its name from now on, and return it absolute.

        Raises:
            InputError: `KIND_missing`.
            ModelError: `KIND_damaged` for what is no safetensors file of this kind.
        """
        path = path.expanduser().absolute()
        if path.suffix != SUFFIX or not path.is_file():
            raise InputError(f"{self.kind}_missing", field=self.field, value=path.name[:80])
        self._checked(path)
        others = [str(each) for each in self._used(path.stem) if each != path]
        remember_one(self._remembered, path.stem, [str(path), *others])
        return path

    def recorded(self, name: str, sha256: str) -> Path:
        """Return the very file that a recipe names: the same name and the same weights.

        Raises:
            InputError: `KIND_missing`.
            ModelError: `KIND_changed` when the name now means other weights.
        """
        for path in self._paths(name):
            if file_digest(path) == sha256:
                return path
        raise ModelError(f"{self.kind}_changed", value=name)

    def all(self) -> Iterator[Path]:
        """Return every file, those that were used before first; a name may come again."""
        used = (path for name in recall_texts(self._remembered) for path in self._used(name))
        lying = (path for folder in self.folders() for path in folder.glob(f"*{SUFFIX}"))
        return (path for path in (*used, *lying) if path.is_file())

    @property
    def _remembered(self) -> str:
        return f"{self.kind}s"

    def _paths(self, name: str) -> list[Path]:
        """Return the files that are called so; a name is one path segment, its ending is free."""
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
    """Return where models lie that were given to SeedGrid as files."""
    return Path(platformdirs.user_data_dir("seedgrid", appauthor=False)) / "models"


def bundled_folder() -> Path:
    """Return where the bundled model lies: `SEEDGRID_BUNDLED`, the checkout, or the package."""
    named = os.environ.get("SEEDGRID_BUNDLED")
    return Path(named) if named else assets_folder() / "model"


def is_own(path: Path) -> bool:
    """Tell whether a file or folder is SeedGrid's own to delete."""
    return own_folder() in path.parents


def place_for(name: str) -> Path:
    """Return where a file of that name is kept.

    Raises:
        ModelError: `model_name` for what is no name of a .safetensors file; `model_there` when
            there is one already.
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
    """Take a .safetensors file in: write it to the path given; it is kept when the block ends.

    A LoRA is known by its tensors, and kept among LoRAs.

    Raises:
        ModelError: As `place_for`; `model_damaged` or `model_unrecognised` for what is neither a
            LoRA nor a whole model of a family that is known: nothing is kept.
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
    """Delete a file or folder of SeedGrid's own and return how many bytes that freed."""
    freed = size_of(path)
    if path.is_dir():
        shutil.rmtree(path)
        return freed
    path.unlink()
    beside = path.with_suffix("")
    return freed + (delete_own(beside) if beside.is_dir() else 0)
