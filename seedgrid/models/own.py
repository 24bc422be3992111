"""Models that are SeedGrid's own: the one that ships, and those that people gave to it.

What SeedGrid fetched or was given it may delete; a folder that somebody keeps elsewhere it only
forgets. No torch needed.

    delete(find("someone/foxes"))
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import platformdirs

from seedgrid.core.errors import ModelError
from seedgrid.core.text import is_folder_name
from seedgrid.models.fetching import discard_unfinished, repository_folder
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.single_file import configuration_source
from seedgrid.storage.assets import assets_folder
from seedgrid.storage.files import make_folder, size_of

BUNDLED: Final = "bundled"
"""What recipes call the model that ships."""

LORAS: Final = "loras"
"""The folder of LoRAs, in that of models."""


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


def delete(hub_id: str, path: Path) -> int:
    """Delete a model from the disk.

    Raises:
        ModelError: `model_kept`: it is bundled, or in a folder of somebody's own; `download_busy`.
    """
    if is_own(path):
        return _delete_own(path)
    repository = path.parent.parent
    if repository != repository_folder(hub_id) or path.parent.name != "snapshots":
        raise ModelError("model_kept", value=hub_id, folder=path.parent)
    from huggingface_hub import scan_cache_dir

    discard_unfinished(hub_id)
    found = scan_cache_dir(repository.parent)
    commits = [
        revision.commit_hash
        for repo in found.repos
        if Path(repo.repo_path) == repository
        for revision in repo.revisions
    ]
    strategy = found.delete_revisions(*commits)
    strategy.execute()
    return int(strategy.expected_freed_size)


def _delete_own(path: Path) -> int:
    freed = size_of(path)
    if path.is_dir():
        shutil.rmtree(path)
        return freed
    path.unlink()
    beside = path.with_suffix("")
    return freed + (_delete_own(beside) if beside.is_dir() else 0)
