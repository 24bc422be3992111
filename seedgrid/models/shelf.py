"""Folders of models, LoRAs and upscaler networks, and finding files by name.

A recipe holds a name and a digest, never a path. A name finds files that were used under it before,
the latest used first, then those in the folders of their kind. SeedGrid deletes only files in
`own_folder` and in the hub's cache.
"""

import contextlib
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import platformdirs

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Lora, Upscaler
from seedgrid.core.text import expanded, is_folder_name
from seedgrid.core.variables import is_offered, models_folders
from seedgrid.models.files import SUFFIX, Header, configuration_source, is_lora, read_header
from seedgrid.storage.cache import file_digest, recall_texts, remember_one
from seedgrid.storage.files import assets_folder, make_folder, size_of

BUNDLED: Final = "bundled"  # The name of the bundled model in recipes
LORAS_FOLDER: Final = "loras"  # The folder of LoRAs, inside the folder of models
_NETWORKS: Final = "upscalers"
_MAX_TENSORS: Final = 20_000  # Of an upscaler; the largest known ones have about 3,000
_CHANNELS: Final = 3

NamedT = TypeVar("NamedT", bound=Lora | Upscaler)


@dataclass(frozen=True, kw_only=True)
class Shelf(Generic[NamedT]):
    """The .safetensors files of one kind, as recipes name them."""

    kind: str  # Prefix of the errors' codes and of the cache's key
    field: str  # The request's field at which errors are shown
    make: type[NamedT]
    folders: Callable[[], Iterable[Path]]
    fits: Callable[[Header], bool]  # Tells by a file's header whether it is of this kind
    alias: Callable[[str], str]  # Another name under which a public page may offer a file, or ""

    def find(self, name: str) -> NamedT:
        """Find a file by its name; raise `KIND_missing`, `KIND_damaged` or `KIND_not_offered`."""
        self.check_offered(name)
        return self._checked(self._paths(name)[0])

    def add(self, path: Path) -> NamedT:
        """Store a file's path by its name, for `find`; raise `KIND_missing` or `KIND_damaged`."""
        path = expanded(path).absolute()
        if path.suffix != SUFFIX or not path.is_file():
            raise InputError(f"{self.kind}_missing", field=self.field, value=path.name[:80])
        named = self._checked(path)
        others = [str(each) for each in self._used_paths(path.stem) if each != path]
        remember_one(f"{self.kind}s", path.stem, [str(path), *others])
        return named

    def recorded(self, named: NamedT) -> Path:
        """Return a recipe's file; raise `KIND_missing`, or `KIND_changed` for other weights."""
        for path in self._paths(named.id):
            if file_digest(path) == named.weights_sha256:
                return path
        raise ModelError(f"{self.kind}_changed", value=named.id)

    def check_offered(self, name: str) -> None:
        """Raise `KIND_not_offered` if a public page does not offer a name, even without a file."""
        name = name.removesuffix(SUFFIX)
        if not is_offered(name, self.alias(name)):
            raise InputError(f"{self.kind}_not_offered", field=self.field, value=name[:80])

    def all(self) -> Iterator[Path]:
        """Return every file, beginning with those that were used; names may repeat."""
        used = (path for name in recall_texts(f"{self.kind}s") for path in self._used_paths(name))
        in_folders = (path for folder in self.folders() for path in folder.glob(f"*{SUFFIX}"))
        return (path for path in (*used, *in_folders) if path.is_file())

    def _paths(self, name: str) -> list[Path]:
        """Return the files of a name, which is one path segment, with or without its suffix."""
        paths: list[Path] = []
        if is_folder_name(name):
            stem = name.removesuffix(SUFFIX)
            in_folders = (folder / f"{stem}{SUFFIX}" for folder in self.folders())
            paths = [path for path in (*self._used_paths(stem), *in_folders) if path.is_file()]
        if not paths:
            raise InputError(f"{self.kind}_missing", field=self.field, value=name[:80])
        return paths

    def _used_paths(self, name: str) -> list[Path]:
        return [Path(path) for path in recall_texts(f"{self.kind}s").get(name, [])]

    def _checked(self, path: Path) -> NamedT:
        damaged = ModelError(f"{self.kind}_damaged", value=path.name)
        try:
            is_fitting = self.fits(read_header(path, path.name))
        except ModelError as error:
            raise damaged from error
        if not is_fitting or not is_folder_name(path.stem):
            raise damaged
        return self.make(id=path.stem, weights_sha256=file_digest(path))


def own_folder() -> Path:
    """Return the folder of models that were dropped on the page or downloaded as files."""
    return Path(platformdirs.user_data_dir("seedgrid", appauthor=False)) / "models"


def bundled_folder() -> Path:
    """Return the bundled model's folder: `SEEDGRID_BUNDLED`, else the checkout's or package's."""
    named = os.environ.get("SEEDGRID_BUNDLED")
    return Path(named) if named else assets_folder() / "model"


def is_own(path: Path) -> bool:
    """Tell whether a path is in `own_folder`, so that SeedGrid may delete it."""
    return own_folder() in path.parents


@contextlib.contextmanager
def receiving(name: str) -> Iterator[Path]:
    """Yield a temporary path for a .safetensors file, which is moved to `own_folder` at the end.

    LoRAs are recognised by their tensors and moved to their own folder.

    Raise `model_name`, `model_there` or LibraryError; `model_damaged`, or `model_unrecognised` if
    the file is neither a LoRA nor a model of a known family. A refused file is deleted.
    """
    if not is_folder_name(name) or not name.endswith(SUFFIX):
        raise ModelError("model_name", value=name[:80])
    if any((folder / name).exists() for folder in (own_folder(), own_folder() / LORAS_FOLDER)):
        raise ModelError("model_there", value=name)
    make_folder(own_folder())
    target = own_folder() / name
    temporary = own_folder() / f".{secrets.token_hex(8)}"
    temporary.mkdir()
    try:
        yield temporary / name
        if is_lora(read_header(temporary / name, name)):
            target = own_folder() / LORAS_FOLDER / name
            make_folder(target.parent)
        else:
            configuration_source(temporary / name)
        (temporary / name).replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def delete_own(path: Path) -> int:
    """Delete a folder, or a file with its configurations beside it; return the freed bytes."""
    freed = size_of(path)
    if path.is_dir():
        shutil.rmtree(path)
        return freed
    path.unlink()
    beside = path.with_suffix("")
    return freed + (delete_own(beside) if beside.is_dir() else 0)


def _network_folders() -> list[Path]:
    return [root / _NETWORKS for root in (*models_folders(), own_folder(), bundled_folder())]


def _network_alias(name: str) -> str:
    """Return the bundled model's name for an upscaler in its folder, else an empty text."""
    own = {path.stem for path in (bundled_folder() / _NETWORKS).glob(f"*{SUFFIX}")}
    return BUNDLED if name in own else ""


def _is_network(header: Header) -> bool:
    """Tell by a header whether a file can be an upscaler network; empty tensors are refused."""
    has_empty = any(0 in entry["shape"] for entry in header.values())
    return 0 < len(header) <= _MAX_TENSORS and not is_lora(header) and not has_empty


UPSCALERS: Final = Shelf(
    kind="upscaler",
    field="upscaler",
    make=Upscaler,
    folders=_network_folders,
    fits=_is_network,
    alias=_network_alias,
)


def known_upscalers() -> tuple[str, ...]:
    """Return the upscalers' names, sorted, without the bundled model's or any not offered here."""
    names = {path.stem for path in UPSCALERS.all() if path.parent.parent != bundled_folder()}
    return tuple(sorted(filter(is_offered, names), key=str.casefold))


def needs_spandrel(upscaler: Upscaler) -> bool:
    """Tell whether an upscaler needs the library spandrel: all but Compact ones do."""
    path = UPSCALERS.recorded(upscaler)
    return compact_scale(read_header(path, path.name)) is None


def compact_scale(header: Header) -> int | None:
    """Return the scale of a Compact network; None if it is another architecture."""
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
    first_weight = shapes.get("body.0.weight", ())
    num_layers = len([name for name in shapes if name.endswith(".weight")])
    (colours, *_) = (*shapes.get(f"body.{num_layers - 1}.bias", ()), 0)
    scale = math.isqrt(colours // _CHANNELS)
    if not first_weight or colours != _CHANNELS * scale**2 or scale < 1:
        return None
    return scale if shapes == _shapes(num_layers, first_weight[0], colours) else None


def _shapes(num_layers: int, width: int, colours: int) -> dict[str, tuple[int, ...]]:
    """Return a Compact network's tensor shapes: convolutions, with PReLU slopes between them."""
    shapes: dict[str, tuple[int, ...]] = {}
    last, before = num_layers - 1, _CHANNELS
    for layer in range(0, num_layers, 2):
        after = colours if layer == last else width
        shapes[f"body.{layer}.weight"] = (after, before, 3, 3)
        shapes[f"body.{layer}.bias"] = (after,)
        if layer != last:
            shapes[f"body.{layer + 1}.weight"] = (after,)
        before = after
    return shapes
