"""Finds models on this machine by name; `download.py` downloads others.

A model is `bundled`, a folder in the diffusers layout, a single .safetensors file, a hub id
(`org/name`, `org/name@revision`) in the Hugging Face cache, or the name of a folder or file that
was used before or is in `own_folder` or a folder of `SEEDGRID_MODELS`. Recipes hold no path.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import DType, ModelRef
from seedgrid.core.text import expanded, is_folder_name, is_hub_id, is_revision
from seedgrid.core.variables import default_model, models_folders
from seedgrid.models import files as model_files
from seedgrid.models.cards import check_room, make_card
from seedgrid.models.files import INDEX, SUFFIX, ModelFiles
from seedgrid.models.hub import hub_cache, read_download, repository_folder, snapshots
from seedgrid.models.loras import may_be_lora
from seedgrid.models.shelf import BUNDLED, bundled_folder, own_folder
from seedgrid.storage.cache import recall_texts, remember_one, states

_PATHS: Final = "places"  # The cache of the paths of models that were used, by name


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that is on this machine."""

    id: str
    revision: str
    path: Path

    @cached_property
    def is_lora(self) -> bool:
        """Whether the path is a LoRA's file, which is no model."""
        return may_be_lora(self.path)

    @cached_property
    def files(self) -> ModelFiles:
        """The checked files."""
        if self.path.is_dir():
            return model_files.read_folder(self.path)
        source = model_files.configuration_source(self.path)
        if isinstance(source, Path):
            return model_files.read_single_file(self.path, source)
        try:
            return model_files.read_single_file(self.path, find_in_hub_cache(source, None).path)
        except ModelError as error:
            raise ModelError("model_configs", value=self.id, hub_id=source) from error

    @cached_property
    def card(self) -> ModelCard:
        """The model's card; its first use reads all weights to compute their digest."""
        digest = self.files.digest()
        ref = ModelRef(id=self.id, revision=self.revision, weights_sha256=digest)
        return make_card(ref, self.files)


def _cached_model(name: str, revision: str, path: Path) -> Model:
    """Return the Model of a path, with its files and card cached until one of the files changes."""
    folder = path if path.is_dir() else path.with_suffix("")
    paths = [path, *folder.glob("*"), *folder.glob("*/*")]
    if folder != path:  # A single file's configurations may be in the hub's cache.
        for repository in map(repository_folder, model_files.CONFIGURATIONS.values()):
            paths += [*repository.glob("[rs]*/*"), *repository.glob("snapshots/*/*")]
    files = {str(each): each for each in paths}
    return _model_of_state(name, revision, path, (*sorted(files), *states(files)))


@lru_cache(maxsize=512)
def _model_of_state(name: str, revision: str, path: Path, _states: tuple[str, ...]) -> Model:
    return Model(id=name, revision=revision, path=path)


def find(name: str | None) -> Model:
    """Find a model by path, name or hub id; None means `SEEDGRID_MODEL`, else the bundled model.

    A path is stored, so that its name finds it later. Raises `model_missing`,
    `model_not_downloaded`, `model_name`, `model_gguf` or `model_pickle`.
    """
    name = name or default_model()
    path = Path(name)
    if name == BUNDLED:
        return _cached_model(BUNDLED, "local", bundled_folder())
    is_long = len(name) > 1000 or any(
        len(part.encode(errors="replace")) > 255 for part in path.parts
    )
    if is_long or not name.isprintable():
        raise ModelError("model_name", value=name[:80])
    if path.suffix == model_files.GGUF:
        raise ModelError("model_gguf", value=path.name)
    if path.suffix in model_files.PICKLE_SUFFIXES:
        raise ModelError("model_pickle", value=path.name, file=path.name)
    path = expanded(path)
    if _may_be_model(path):
        model = _as_model(path.resolve())
        known, used = recall_texts(_PATHS).get(model.id, []), str(model.path)
        if known[:1] != [used]:  # Its name, which is all that a recipe has, finds the latest.
            remember_one(_PATHS, model.id, [used, *(each for each in known if each != used)])
        return model
    if paths := _local_paths(name):
        return _as_model(paths[0])
    hub_id, revision, file = read_download(name)
    if hub_id is None or file:
        raise ModelError("model_missing", value=name[:200])
    return find_in_hub_cache(hub_id, revision)


def card_here(name: str | None) -> ModelCard:
    """Return the card of a model; raises as `find`, or `model_memory` if memory cannot hold it."""
    model = find(name)  # Memory is checked before `card` reads all weights, which can take minutes.
    check_room(model.id, model.files.weights_bytes, "bfloat16")
    return model.card


def find_recorded(ref: ModelRef, to_paint: DType | None = None) -> Model:
    """Find the model of a recipe: the same name and the same weights.

    Raises `model_missing`, `model_not_downloaded`; `model_changed` for other weights; the error of
    a damaged model; or as `check_room`, if memory cannot hold the weights in `to_paint`.
    """
    models: list[Model] = []
    if is_hub_id(ref.id) and is_revision(ref.revision):
        models = [find_in_hub_cache(ref.id, ref.revision if ref.revision != "local" else None)]
    elif ref.revision == "local" and ref.id == BUNDLED:
        models = [find(BUNDLED)]
    elif ref.revision == "local":  # Only hub models have revisions.
        models = [_as_model(path) for path in _local_paths(ref.id)]
    problem = ModelError("model_missing", value=ref.id)
    for model in models:
        try:
            if to_paint is not None:
                check_room(model.id, model.files.weights_bytes, to_paint)
            if model.card.ref.weights_sha256 == ref.weights_sha256:
                return model
            problem = ModelError("model_changed", value=ref.id)
        except ModelError as error:  # Another model of that name may fit.
            problem = error
    raise problem


def installed() -> tuple[Model, ...]:
    """Return every model on this machine, the bundled one first; a damaged one's `card` raises."""
    paths = [path for root in _roots() if root.is_dir() for path in sorted(root.iterdir())]
    paths += [Path(path) for used in recall_texts(_PATHS).values() for path in used]
    for repository in sorted(hub_cache().glob("models--*")):
        paths += snapshots(repository)[-1:]
    models = {BUNDLED: find(BUNDLED)} if bundled_folder().is_dir() else {}
    for path in paths:
        if (path / INDEX).is_file() or (path.is_file() and _may_be_model(path)):
            model = _as_model(path)
            models.setdefault(model.id, model)
    return tuple(models.values())


def _may_be_model(path: Path) -> bool:
    return path.is_dir() or (path.suffix == SUFFIX and path.is_file())


def _as_model(path: Path) -> Model:
    """Return the model of a path; a snapshot of the hub's cache is named by its hub id."""
    *_, repository, parent, revision = ("", "", *path.parts)
    hub_id = repository.removeprefix("models--").replace("--", "/", 1)
    is_cached = repository.startswith("models--") and parent == "snapshots"
    if is_cached and is_hub_id(hub_id) and is_revision(revision):
        return _cached_model(hub_id, revision, path)
    return _cached_model(path.name, "local", path)


def _local_paths(name: str) -> list[Path]:
    """Return the paths of local models of a name; none if it is more than one path segment."""
    if not is_folder_name(name):
        return []
    used = [Path(path) for path in recall_texts(_PATHS).get(name, [])]
    return [path for path in (*used, *(root / name for root in _roots())) if _may_be_model(path)]


def _roots() -> list[Path]:
    return [*models_folders(), own_folder()]


def find_in_hub_cache(hub_id: str, revision: str | None) -> Model:
    """Find a revision; None is main, else the newest snapshot; raise `model_not_downloaded`."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    # Offline `snapshot_download` requires every file of a repository, also those that are not
    # loaded. The index alone names the components.
    try:
        index = try_to_load_from_cache(hub_id, INDEX, revision=revision, cache_dir=hub_cache())
    except HFValidationError as error:
        raise ModelError("model_not_downloaded", value=hub_id) from error
    folders = [] if revision else snapshots(repository_folder(hub_id))
    if isinstance(index, str):
        folders = [Path(index).parent]
    if not folders:
        raise ModelError("model_not_downloaded", value=hub_id)
    return _cached_model(hub_id, folders[-1].name, folders[-1])
