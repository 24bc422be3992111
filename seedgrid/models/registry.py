"""Find models by name, on this machine only. Nothing is fetched here but by `download`.

A model is `bundled`, a folder in the diffusers layout, a single .safetensors file, a hub id
(`org/name`, `org/name@revision`) that is in the Hugging Face cache, or the name of a folder or file
that was used before or lies in one of the folders of `SEEDGRID_MODELS`. A recipe holds the name and
the digest, never a path. Needs no torch.

    find("bundled").card.schedulers
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError
from seedgrid.core.names import is_folder_name, is_hub_id, is_revision
from seedgrid.core.recipe import ModelRef
from seedgrid.models.cards import make_card
from seedgrid.models.files import PICKLE_SUFFIXES, VARIANT, ModelFiles, read_folder
from seedgrid.models.single_file import configuration_source, read_single_file
from seedgrid.storage.assets import assets_folder
from seedgrid.storage.cache import recall, remember

BUNDLED: Final = "bundled"

_PLACES: Final = "places"
_WANTED: Final = re.compile(r"[a-z0-9_]+/[^/]+\.(?:json|txt|model|safetensors)")

_ASK_S: Final = 20.0
"""How long the hub may take to say what a model consists of."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that is on this machine.

    Attributes:
        id: What recipes call it.
        revision: The hub's commit, or `"local"`.
    """

    id: str
    revision: str
    path: Path

    @cached_property
    def files(self) -> ModelFiles:
        """The checked files.

        Raises:
            ModelError: The model is damaged, or not safe to load.
        """
        if self.path.is_dir():
            return read_folder(self.path)
        source = configuration_source(self.path)
        if isinstance(source, Path):
            return read_single_file(self.path, source)
        try:
            return read_single_file(self.path, _find_in_hub_cache(source, None).path)
        except ModelError as error:
            raise ModelError("model_configs", value=self.id, hub_id=source) from error

    @cached_property
    def card(self) -> ModelCard:
        """What the model can do; reads all its weights the first time, for their digest."""
        digest = self.files.digest()
        ref = ModelRef(id=self.id, revision=self.revision, weights_sha256=digest)
        return make_card(ref, self.files)


def find(model: str | None) -> Model:
    """Find a model by what a person calls it.

    Args:
        model: As the module says; None is `SEEDGRID_MODEL`, or the bundled model.

    Raises:
        ModelError: `model_missing` with what to do, `model_name`, or `model_pickle`.
    """
    wanted = model or os.environ.get("SEEDGRID_MODEL") or BUNDLED
    if wanted == BUNDLED:
        return Model(id=BUNDLED, revision="local", path=bundled_folder())
    if len(wanted) > 1000 or not wanted.isprintable():
        raise ModelError("model_name", value=wanted[:80])
    if Path(wanted).suffix in PICKLE_SUFFIXES:
        raise ModelError("model_pickle", value=Path(wanted).name, file=Path(wanted).name)
    local = _find_local(wanted)
    if local is not None:
        return local
    hub_id, revision = _hub_name(wanted)
    if hub_id is None:
        raise ModelError("model_missing", value=wanted[:200])
    return _find_in_hub_cache(hub_id, revision)


def find_recorded(ref: ModelRef) -> Model:
    """Find the very model that a recipe names: the same name and the same weights.

    Raises:
        ModelError: `model_missing`, `model_changed` when the name now means other weights, or
            what is wrong with the model of that name.
    """
    if ref.id == BUNDLED:
        models = [find(BUNDLED)]
    elif is_hub_id(ref.id) and is_revision(ref.revision):
        models = [_find_in_hub_cache(ref.id, ref.revision if ref.revision != "local" else None)]
    else:
        places = _known_places(ref.id)
        models = [_as_model(path) for path in places if _may_be_model(path)]
    problem = ModelError("model_missing", value=ref.id)
    for model in models:
        try:
            if model.card.ref.weights_sha256 == ref.weights_sha256:
                return model
            problem = ModelError("model_changed", value=ref.id)
        except ModelError as error:  # Another model of that name may still be the one.
            problem = error
    raise problem


def rehash(ref: ModelRef) -> None:
    """Read a model's weights again, every byte, and compare them with what a recipe names.

    Raises:
        ModelError: `model_changed`, or as `find_recorded`.
    """
    if find_recorded(ref).files.digest(anew=True) != ref.weights_sha256:
        raise ModelError("model_changed", value=ref.id)


def installed() -> tuple[Model, ...]:
    """Return the models on this machine: bundled, used before, `SEEDGRID_MODELS`, hub cache.

    Those that are damaged are listed too; reading their `card` tells what is wrong.
    """
    folders = [path for root in _roots() if root.is_dir() for path in sorted(root.iterdir())]
    folders += [Path(place) for places in recall(_PLACES).values() for place in places]
    folders += _hub_snapshots()
    models = {BUNDLED: find(BUNDLED)} if bundled_folder().is_dir() else {}
    for path in folders:
        if (path / "model_index.json").is_file() or (path.is_file() and _may_be_model(path)):
            model = _as_model(path)
            models.setdefault(model.id, model)
    return tuple(models.values())


def bundled_folder() -> Path:
    """Return where the bundled model lies: `SEEDGRID_BUNDLED`, the checkout, or the package."""
    named = os.environ.get("SEEDGRID_BUNDLED")
    if named:
        return Path(named)
    return assets_folder() / "model"


def download(hub_id: str) -> Model:
    """Fetch a model from the hub, safetensors and configurations only; the one use of the network.

    Args:
        hub_id: `org/name`, or `org/name@revision`.

    Raises:
        ModelError: `model_name`, or `download_failed` with the reason.
    """
    from huggingface_hub import HfApi, snapshot_download

    name, revision = _hub_name(hub_id)
    if name is None:
        raise ModelError("model_name", value=hub_id[:80])
    try:
        # Asked once: listing a repository tries again and again where there is no network.
        siblings = HfApi().model_info(name, revision=revision, timeout=_ASK_S).siblings or ()
        there = [sibling.rfilename for sibling in siblings]
        snapshot_download(name, revision=revision, allow_patterns=files_to_fetch(there))
    except Exception as error:
        # Whatever library the hub's client speaks HTTP with, its errors are no types of ours.
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        raise ModelError("download_failed", value=hub_id, reason=reason) from error
    return _find_in_hub_cache(name, revision)


def files_to_fetch(names: Sequence[str]) -> list[str]:
    """Return the files of a repository that are loaded: neither pickles nor second copies.

    Args:
        names: All files of the repository, with their folders.

    Returns:
        The index, configurations, tokenizers and weights; of a variant such as fp16 only what has
        no plain counterpart.
    """
    plain = set(names)
    return [
        name
        for name in names
        if (name == "model_index.json" or _WANTED.fullmatch(name))
        and not ((variant := VARIANT.search(name)) and name.replace(f".{variant[1]}", "") in plain)
    ]


def _find_local(wanted: str) -> Model | None:
    """Return the folder or file of that path, or of that name where models are kept."""
    path = Path(wanted).expanduser()
    if _may_be_model(path):
        model = _as_model(path.resolve())
        _remember_place(model)
        return model
    for place in _known_places(wanted):
        if _may_be_model(place):
            return _as_model(place)
    return None


def _may_be_model(path: Path) -> bool:
    return path.is_dir() or (path.suffix == ".safetensors" and path.is_file())


def _as_model(path: Path) -> Model:
    """Name a model: a snapshot of the hub's cache by its hub id, any other by its own name."""
    *_, repository, snapshots, revision = ("", "", *path.parts)
    hub_id = repository.removeprefix("models--").replace("--", "/", 1)
    is_cached = repository.startswith("models--") and snapshots == "snapshots"
    if is_cached and is_hub_id(hub_id) and is_revision(revision):
        return Model(id=hub_id, revision=revision, path=path)
    return Model(id=path.name, revision="local", path=path)


def _hub_name(text: str) -> tuple[str | None, str | None]:
    """Read `org/name` or `org/name@revision`, where a branch may have slashes; None for others."""
    hub_id, at, revision = text.partition("@")
    if not is_hub_id(hub_id) or (at and not all(map(is_revision, revision.split("/")))):
        return None, None
    return hub_id, revision or None


def _known_places(name: str) -> list[Path]:
    """Return where a local model of that name may lie; a name is one path segment."""
    if not is_folder_name(name):
        return []
    places = [Path(place) for place in recall(_PLACES).get(name, [])]
    return places + [root / name for root in _roots()]


def _remember_place(model: Model) -> None:
    """Remember a folder, so that its name alone finds it again when a picture is verified."""
    places = recall(_PLACES)
    known = places.setdefault(model.id, [])
    if str(model.path) not in known:
        known.append(str(model.path))
        remember(_PLACES, places)


def _roots() -> list[Path]:
    return [Path(part) for part in os.environ.get("SEEDGRID_MODELS", "").split(os.pathsep) if part]


def _find_in_hub_cache(hub_id: str, revision: str | None) -> Model:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(hub_id, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        raise ModelError("model_not_downloaded", value=hub_id) from error
    return Model(id=hub_id, revision=folder.name, path=folder)


def _hub_snapshots() -> list[Path]:
    """Return the newest snapshot of each model in the hub's cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    newest = []
    for repository in sorted(Path(HF_HUB_CACHE).glob("models--*")):
        snapshots = sorted(repository.glob("snapshots/*"), key=lambda path: path.stat().st_mtime)
        newest += snapshots[-1:]
    return newest
