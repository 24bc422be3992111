"""Finds, lists, adds and deletes LoRAs, low-rank adaptations in safetensors files.

A LoRA is found by the hub id of its download, or by the name of a file that was used before or is
in `own_folder`, in a folder of `SEEDGRID_MODELS`, or in the folder `loras` of either. Trigger words
and base model (metadata, or card on the hub) are untrusted text. Whether a LoRA fits a model is
checked only when it is loaded.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import safe_open

from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Lora
from seedgrid.core.text import is_hub_id, one_line
from seedgrid.core.variables import models_folders
from seedgrid.models.files import SUFFIX, is_lora, read_header
from seedgrid.models.hub import HubModel
from seedgrid.models.shelf import LORAS_FOLDER, Shelf, delete_own, is_own, own_folder
from seedgrid.storage.cache import file_digest, recall, recall_texts, remember_one
from seedgrid.storage.files import make_folder, size_of

MAX_WORDS: Final = 6

_SOURCES: Final = "lora_sources"  # The cache of hub ids by LoRA name
_CARDS: Final = "lora_cards"  # The cache of trigger words and licences by LoRA name
_MAX_CHARACTERS: Final = 60  # Of one trigger word or base model


@dataclass(frozen=True, kw_only=True)
class LoraItem:
    """One LoRA on this machine."""

    id: str  # Its name in recipes and prompts
    path: Path
    num_bytes: int
    hub_id: str  # Of its download; empty if it was not downloaded
    made_for: str  # The base model, from its metadata; empty if unknown
    words: tuple[str, ...]  # Trigger words, else the most frequent tags of its training pictures
    licence: str  # From its card on the hub
    deletable: bool


def _source_of(name: str) -> str:
    """Return the hub id of a LoRA's download; empty if it was not downloaded."""
    source = recall(_SOURCES).get(name)
    return source if isinstance(source, str) else ""


def _folders() -> list[Path]:
    roots = (*models_folders(), own_folder())
    return [folder for root in roots for folder in (root / LORAS_FOLDER, root)]


LORAS: Final = Shelf(
    kind="lora", field="prompt", make=Lora, folders=_folders, fits=is_lora, alias=_source_of
)


def find_lora(name: str) -> Lora:
    """Find a LoRA by its name or its hub id; paths are not read.

    Raises `lora_missing`, `lora_not_downloaded`, `lora_not_offered` (field `prompt`),
    `lora_damaged`.
    """
    if is_hub_id(name):
        names = [each for each, hub_id in recall(_SOURCES).items() if hub_id == name]
        if not names:
            raise InputError("lora_not_downloaded", field="prompt", value=name)
        name = names[-1]
    return LORAS.find(name)


def may_be_lora(path: Path) -> bool:
    """Tell whether a path is a complete safetensors file with a LoRA."""
    if path.suffix != SUFFIX or not path.is_file():
        return False
    try:
        return is_lora(read_header(path, path.name))
    except ModelError:
        return False


def lora_items() -> tuple[LoraItem, ...]:
    """Return every LoRA on this machine, each name once, sorted by name."""
    paths: dict[str, Path] = {}
    for path in LORAS.all():
        if path.stem not in paths and may_be_lora(path):
            paths[path.stem] = path
    return tuple(describe_lora(paths[name]) for name in sorted(paths, key=str.casefold))


def describe_lora(path: Path) -> LoraItem:
    """Return the item of a LoRA, from its file and its card."""
    with safe_open(path, framework="np") as file:
        metadata = file.metadata() or {}
    words, licence, *_ = [*recall_texts(_CARDS).get(path.stem, []), "", ""]
    phrases = (metadata.get("modelspec.trigger_phrase") or words)[:400].split(",")
    architecture = metadata.get("modelspec.architecture", "").partition("/")[0]
    return LoraItem(
        id=path.stem,
        path=path,
        num_bytes=size_of(path),
        hub_id=_source_of(path.stem),
        made_for=_plain(architecture or metadata.get("ss_base_model_version", "")),
        words=(_plain_lines(phrases) or _plain_lines(_usual_tags(metadata)))[:MAX_WORDS],
        licence=licence,
        deletable=is_own(path),
    )


def check_free(model: HubModel) -> None:
    """Raise `model_there` if another file already has the name of a LoRA of the hub."""
    path = _path_of(model)
    if path.exists() and file_digest(path) != model.files[0].digest:
        raise ModelError("model_there", value=path.name)


def keep_lora(model: HubModel, fetched: Path) -> None:
    """Move a downloaded LoRA to its folder, and store its card's facts; raises as `check_free`."""
    check_free(model)
    path = _path_of(model)
    make_folder(path.parent)
    shutil.move(fetched, path)
    remember_one(_SOURCES, model.lora, model.id)
    remember_one(_CARDS, model.lora, [model.words[:400], model.licence])


def delete_lora(name: str) -> int:
    """Delete a LoRA and return its bytes; raise `model_missing`, `model_kept` if not SeedGrid's."""
    for item in lora_items():
        if item.id == name:
            if not item.deletable:
                raise ModelError("model_kept", value=name, folder=item.path.parent)
            return delete_own(item.path)
    raise ModelError("model_missing", value=name[:200])


def _path_of(model: HubModel) -> Path:
    return own_folder() / LORAS_FOLDER / f"{model.lora}{SUFFIX}"


def _usual_tags(metadata: dict[str, str]) -> list[str]:
    """Return the tags that are at least half as frequent as the most frequent one.

    Source: https://github.com/kohya-ss/sd-scripts, `ss_tag_frequency` in `train_network.py`.
    """
    try:
        folders: Any = json.loads(metadata.get("ss_tag_frequency", "{}"))
        counts: Counter[str] = Counter()
        for tags in folders.values():
            counts.update({str(tag): int(number) for tag, number in tags.items()})
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return []
    most = max(counts.values(), default=0)
    return [tag for tag, number in counts.most_common(MAX_WORDS) if number * 2 >= most]


def _plain_lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(_plain, texts))))


def _plain(text: str) -> str:
    """Return an untrusted text as one short line without angle brackets."""
    line = one_line(" ".join(text.split()), limit=_MAX_CHARACTERS)
    return line.replace("<", "").replace(">", "").strip()
