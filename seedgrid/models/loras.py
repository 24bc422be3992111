"""Low-rank adaptations (LoRAs) on this machine: safetensors files, by name and by content.

A LoRA is a file, the name of one that was used before, was given to SeedGrid, or lies in one of
the folders of `SEEDGRID_MODELS` or in `loras` there, or the hub id it was fetched by. Trigger words
and what it was made for stand in its own file, as those who train LoRAs write them, or on its card
on the hub; all of it is a stranger's text. What does not fit a model is found out when it is
loaded. Needs no torch.

    find_lora("fox").weights_sha256
"""

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import safe_open

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Lora
from seedgrid.core.text import is_hub_id, one_line
from seedgrid.core.variables import is_offered, models_folders
from seedgrid.models.digests import file_digest
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.hub import HubModel
from seedgrid.models.shelf import LORAS, Shelf, delete_own, is_own, own_folder
from seedgrid.storage.cache import recall, recall_texts, remember_one
from seedgrid.storage.files import make_folder, size_of

MAX_WORDS: Final = 6

_SOURCES: Final = "lora_sources"
_SAID: Final = "lora_cards"
_MAX_CHARACTERS: Final = 60


@dataclass(frozen=True, kw_only=True)
class LoraItem:
    """One LoRA on this machine.

    Attributes:
        id: What recipes and prompts call it.
        hub_id: Where it was fetched; empty where it came otherwise.
        licence: As its card on the hub names it.
        made_for: The kind of model that it says it was trained on; empty where it says nothing.
        words: What to write into the prompt with it: its trigger words, or else what most of its
            training pictures were called.
    """

    id: str
    path: Path
    num_bytes: int
    hub_id: str
    made_for: str
    words: tuple[str, ...]
    licence: str
    deletable: bool


def find_lora(name: str) -> Lora:
    """Find a LoRA by its name, or by its hub id; no path is followed here.

    Raises:
        InputError: `lora_missing` or `lora_not_downloaded`, by the prompt, where it was named;
            `lora_not_offered`.
        ModelError: `lora_damaged`.
    """
    if is_hub_id(name):
        fetched = [known for known, hub_id in recall(_SOURCES).items() if hub_id == name]
        if not fetched:
            raise InputError("lora_not_downloaded", field="prompt", value=name)
        name = fetched[-1]
    check_offered(name)
    return _named(_SHELF.find(name))


def check_offered(name: str) -> None:
    """Refuse a LoRA that the owner of a public page does not offer, whether it is here or not."""
    name = name.removesuffix(SUFFIX)
    if not is_offered(name, source_of(name)):
        raise InputError("lora_not_offered", field="prompt", value=name[:80])


def take_lora(path: Path) -> Lora:
    """Make a file known by its name from now on; see `Shelf.take`."""
    return _named(_SHELF.take(path))


def recorded_lora(lora: Lora) -> Path:
    """Return the very file that a recipe names; see `Shelf.recorded`."""
    return _SHELF.recorded(lora.id, lora.weights_sha256)


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


def source_of(name: str) -> str:
    """Return the hub id that a LoRA was fetched by; empty where it came otherwise."""
    source = recall(_SOURCES).get(name)
    return source if isinstance(source, str) else ""


def lora_items() -> tuple[LoraItem, ...]:
    """Return every LoRA on this machine, in order of their names."""
    return tuple(describe_lora(path) for path in known_loras())


def describe_lora(path: Path) -> LoraItem:
    """Say of a LoRA what its file and its card say."""
    metadata, name = _metadata(path), path.stem
    words, licence, *_ = [*recall_texts(_SAID).get(name, []), "", ""]
    architecture = metadata.get("modelspec.architecture", "").partition("/")[0]
    return LoraItem(
        id=name,
        path=path,
        num_bytes=size_of(path),
        hub_id=source_of(name),
        made_for=_plain(architecture or metadata.get("ss_base_model_version", "")),
        words=_phrases(metadata.get("modelspec.trigger_phrase") or words) or _usual_tags(metadata),
        licence=licence,
        deletable=is_own(path),
    )


def check_free(model: HubModel) -> None:
    """Make sure that no other LoRA has the name that one of the hub would get."""
    place = _place(model)
    if place.exists() and file_digest(place) != model.files[0].digest:
        raise ModelError("model_there", value=place.name)


def keep_lora(model: HubModel, fetched: Path) -> None:
    """Put a LoRA that was fetched among the others, with what its card says.

    Raises:
        ModelError: `model_there`.
        LibraryError: The folder cannot be made.
    """
    check_free(model)
    place = _place(model)
    make_folder(place.parent)
    shutil.move(fetched, place)
    remember_one(_SOURCES, model.lora, model.id)
    remember_one(_SAID, model.lora, [model.words[:400], model.licence])


def delete_lora(name: str) -> int:
    """Delete a LoRA that was fetched or dropped here, and return how many bytes that freed."""
    for path in known_loras():
        if path.stem == name:
            if not is_own(path):
                raise ModelError("model_kept", value=name, folder=path.parent)
            return delete_own(path)
    raise ModelError("model_missing", value=name[:200])


def _place(model: HubModel) -> Path:
    return own_folder() / LORAS / f"{model.lora}{SUFFIX}"


def _folders() -> list[Path]:
    return [place for root in (*models_folders(), own_folder()) for place in (root / LORAS, root)]


_SHELF: Final = Shelf(kind="lora", field="prompt", folders=_folders, fits=is_lora)


def _named(path: Path) -> Lora:
    return Lora(id=path.stem, weights_sha256=file_digest(path))


def _metadata(path: Path) -> dict[str, str]:
    """Return what a file says of itself; its table was found to be whole before."""
    with safe_open(path, framework="np") as file:
        return file.metadata() or {}


def _phrases(text: str) -> tuple[str, ...]:
    phrases = (_plain(each) for each in text[:400].split(","))
    return tuple(dict.fromkeys(each for each in phrases if each))[:MAX_WORDS]


def _usual_tags(metadata: dict[str, str]) -> tuple[str, ...]:
    """Return what at least half as many training pictures were called as by the commonest tag.

    Source: https://github.com/kohya-ss/sd-scripts, `ss_tag_frequency` in `train_network.py`.
    """
    try:
        folders: Any = json.loads(metadata.get("ss_tag_frequency", "{}"))
        counts: Counter[str] = Counter()
        for tags in folders.values():
            counts.update({str(tag): int(number) for tag, number in tags.items()})
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return ()
    most = max(counts.values(), default=0)
    usual = [tag for tag, number in counts.most_common(MAX_WORDS) if number * 2 >= most]
    return tuple(dict.fromkeys(each for tag in usual if (each := _plain(tag))))


def _plain(text: str) -> str:
    """Return a text of a stranger's as one short line that says no tag and no weight."""
    return one_line(" ".join(text.split()), limit=_MAX_CHARACTERS).translate(_NO_TAG).strip()


_NO_TAG: Final = {ord(mark): None for mark in "<>"}
