"""Lists the models on this machine, and recommended ones, without reading their weights."""

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import DType
from seedgrid.models import registry
from seedgrid.models.cards import choose_dtype, first_fitting, likely_device_type
from seedgrid.models.files import SUFFIX, ModelFiles, read_header
from seedgrid.models.registry import Model
from seedgrid.models.shelf import BUNDLED, is_own
from seedgrid.storage.cache import known_digest, recall
from seedgrid.storage.files import size_of

Kind = Literal["bundled", "hub", "folder", "file"]

LICENCES: Final = "licences"  # The cache of licences by hub id

_FORMATS: Final = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8"}
_LICENCE: Final = re.compile(r"^license(?:_name)?:[ \t]*([\w.+-]{1,60})[ \t]*$", re.MULTILINE)
_CARD_CHARACTERS: Final = 4000  # The length of a README's beginning that names the licence
_BESIDE_WEIGHTS: Final = 1.1  # Memory factor for activations and libraries beside the weights
_INT8_SHARE: Final = 0.55  # Memory in int8 as a share of bfloat16's: only linear layers shrink


@dataclass(frozen=True, kw_only=True)
class Item:
    """One model on this machine."""

    id: str
    revision: str
    kind: Kind
    path: Path
    num_bytes: int
    family: str = ""
    licence: str = ""  # From its card; empty if unknown
    width: int = 0  # The native size in pixels, with `height`; 0 if it cannot be read
    height: int = 0
    formats: tuple[str, ...] = ()  # The number formats of its weights, the most common first
    needs: Mapping[str, int] = field(default_factory=dict)  # Bytes of memory, default format first
    is_tested: bool = True  # Whether SeedGrid's tests paint with its family
    deletable: bool = False  # Whether `download.delete` may delete it
    weights_sha256: str | None = None  # Its digest, if no large file has to be read
    problem: ModelError | None = None

    @property
    def fitting(self) -> str | None:
        """The first number format that fits this machine's memory; None if none does."""
        return first_fitting(self.needs)


class FirstModel(BaseModel):
    """A recommended model or tiny decoder; `first_models.json` names the sources of its figures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    revision: str
    family: str
    licence: str
    gated: bool = False
    download_gb: float
    memory_gb: float
    size: str
    # Its strength: speed, text in pictures, little memory, many LoRAs; `"live"` for a tiny decoder
    use: Literal["fast", "text", "small", "loras", "live", ""] = ""

    @property
    def needs(self) -> dict[str, int]:
        """Approximate memory in bytes by number format."""
        num_bytes = int(self.memory_gb * 1e9)
        return {"bfloat16": num_bytes, "int8": int(num_bytes * _INT8_SHARE)}


@cache
def first_models() -> tuple[FirstModel, ...]:
    """Return recommended models of the common families, and tiny decoders."""
    path = Path(__file__).with_name("first_models.json")
    return tuple(FirstModel(**row) for row in json.loads(path.read_bytes())["models"])


def items() -> tuple[Item, ...]:
    """Return every model on this machine, the bundled one first; LoRAs are left out."""
    return tuple(describe(model) for model in registry.installed() if not model.is_lora)


def describe(model: Model) -> Item:
    """Return the item of a model, with its error if it is damaged."""
    kind: Kind = "folder" if model.path.is_dir() else "file"
    if model.id == BUNDLED or model.revision != "local":
        kind = "bundled" if model.id == BUNDLED else "hub"
    item = Item(
        id=model.id,
        revision=model.revision,
        kind=kind,
        path=model.path,
        num_bytes=size_of(model.path),
        licence=_licence(model),
        deletable=is_own(model.path) or kind == "hub",
    )
    try:
        return _with_details(item, model.files)
    except ModelError as error:
        return replace(item, problem=error)


def alike(card: ModelCard, models: Iterable[Model], *, is_family: bool = False) -> tuple[str, ...]:
    """Return those with the card's latent shape: its family first, or it alone if `is_family`."""
    others = []
    for model in models:
        if model.id == card.ref.id or model.is_lora:
            continue
        with contextlib.suppress(ModelError, KeyError, TypeError):
            family = model.files.family
            is_same = family.pipeline == card.family
            if family.latent(model.files.configs) == card.latent and (is_same or not is_family):
                others.append((not is_same, model.id))
    return tuple(name for _, name in sorted(others))


def _with_details(item: Item, files: ModelFiles) -> Item:
    try:
        width, height = files.family.size(files.configs)
    except (KeyError, TypeError) as error:
        raise ModelError("model_damaged", value=item.id, file="config.json") from error
    dtype = choose_dtype(likely_device_type(), files.num_parameters)
    formats: tuple[DType, ...] = (dtype,)
    if not files.quantiser and files.checkpoint is None:
        formats = (dtype, "bfloat16", "int8-float32" if dtype == "float32" else "int8-bfloat16")
    decoding = width * height * files.family.decoding_bytes(files.configs)
    return replace(
        item,
        family=files.family.pipeline,
        is_tested=files.family.is_tested,
        width=width,
        height=height,
        formats=_formats(files),
        needs={
            each.partition("-")[0]: int(files.weights_bytes(each) * _BESIDE_WEIGHTS + decoding)
            for each in formats
        },
        weights_sha256=known_digest(files.files),
    )


def _licence(model: Model) -> str:
    card = model.path / "README.md"
    if model.path.is_dir() and card.is_file():
        head = card.read_text(encoding="utf-8", errors="replace")[:_CARD_CHARACTERS]
        names = [each for each in _LICENCE.findall(head) if each != "other"]
        if names:
            return str(names[-1])
    licence = recall(LICENCES).get(model.id)
    return licence if isinstance(licence, str) else ""


def _formats(files: ModelFiles) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for path in files.files.values():
        if path.suffix == SUFFIX:
            for entry in read_header(path, path.name).values():
                counts[_FORMATS.get(entry["dtype"], "other")] += math.prod(entry["shape"])
    return tuple(name for name, _ in counts.most_common())
