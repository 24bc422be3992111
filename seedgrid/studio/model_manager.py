"""The models, LoRAs and upscaler networks on this machine or to download.

A public page shows only those that it offers. It refuses all changes with `download_forbidden`,
but allows downloads of the models in `SEEDGRID_ALLOWED_MODELS`.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError
from seedgrid.core.prompts import read_scale
from seedgrid.core.recipe import Lora, Recipe, Upscaler
from seedgrid.core.variables import allowed_models, is_offered, is_public
from seedgrid.diffusion.probe_results import ProbeReport, newest_report
from seedgrid.models import catalogue, download, registry, shelf
from seedgrid.models.catalogue import FirstModel, Item
from seedgrid.models.download import Downloads, Progress, fetch_configurations
from seedgrid.models.files import SUFFIX, configuration_source
from seedgrid.models.hub import ask, decoder_folder, decoder_for
from seedgrid.models.loras import LORAS, LoraItem, delete_lora, describe_lora, find_lora, lora_items
from seedgrid.models.shelf import UPSCALERS, known_upscalers


@dataclass(frozen=True, kw_only=True)
class ManagedModel:
    """A model on this machine, whether it fits the machine's memory, and its newest probe."""

    item: Item
    fits: bool | None  # Whether its default number format fits; None if its needs are unknown
    probe: ProbeReport | None


class ModelManager:
    """Lists, adds, downloads and deletes models. Safe to use from any thread.

    `downloads` has the downloads of this process, and interrupted ones.
    """

    def __init__(self) -> None:
        self.downloads = Downloads()
        self._installed_at = lru_cache(maxsize=1)(lambda _second: registry.installed())

    def items(self) -> tuple[ManagedModel, ...]:
        """Return the models on this machine; on a public page only those offered."""
        return tuple(_managed(item) for item in catalogue.items() if is_offered(item.id))

    def alike(self, card: ModelCard, recipe: Recipe) -> tuple[str, ...]:
        """Return other models with latents of the same shape, those of the same family first.

        For a recipe with LoRAs or a start picture, return only those of the same family. The list
        may be a second old: each click on a picture asks, and reading it looks at every file.
        """
        models = self._installed_at(int(time.monotonic()))
        names = catalogue.alike(card, models, is_family=bool(recipe.loras or recipe.start))
        return tuple(name for name in names if is_offered(name))

    def loras(self) -> tuple[LoraItem, ...]:
        """Return the LoRAs on this machine; on a public page only those offered."""
        return tuple(each for each in lora_items() if is_offered(each.id, each.hub_id))

    def find_loras(self, named: Sequence[str]) -> tuple[Lora, ...]:
        """Return LoRAs from names or files with scales, as in `"fox.safetensors=0.8"`.

        Files are remembered by name. Raise if a file is missing or no LoRA, or a scale is invalid.
        """
        loras = []
        for text in named:
            name, equals, scale = ("", "", "") if text.endswith(SUFFIX) else text.rpartition("=")
            file = name if equals else text
            lora = LORAS.add(Path(file)) if file.endswith(SUFFIX) else find_lora(file)
            number = read_scale(scale) if equals else 1.0
            loras.append(lora.model_copy(update={"scale": number}))
        return tuple(loras)

    def upscalers(self, card: ModelCard | None = None) -> tuple[str, ...]:
        """Return the networks' names, that of `card` first; on a public page only those offered."""
        own = (card.upscaler,) if card and card.upscaler else ()
        return tuple(dict.fromkeys((*own, *known_upscalers())))

    def find_upscaler(self, named: str) -> Upscaler:
        """Return a network by its name or file; raise if it is missing or is no network."""
        return UPSCALERS.add(Path(named)) if named.endswith(SUFFIX) else UPSCALERS.find(named)

    def recommended(self) -> tuple[FirstModel, ...]:
        """Return missing recommended models, and missing tiny decoders of installed models."""
        installed, tiny = set(), set()
        for model in registry.installed():
            installed.add(model.id)
            with contextlib.suppress(ModelError):
                tiny.add(decoder_for(model.files.configs))
        return tuple(
            each
            for each in catalogue.first_models()
            if _may_download(each.id)
            and each.id not in installed
            and (each.use != "live" or (each.id in tiny and not decoder_folder(each.id)))
        )

    def tiny_decoder(self, model: str) -> str:
        """Return the name of a model's tiny decoder; empty if it is not downloaded."""
        try:
            name = decoder_for(registry.find(model).files.configs)
        except ModelError:
            return ""
        return name if name and decoder_folder(name) else ""

    def download(self, hub_id: str) -> Progress:
        """Start or resume a download; raise `model_name` or `download_forbidden`."""
        if not _may_download(hub_id):
            raise ModelError("download_forbidden", value=hub_id[:80])
        return self.downloads.start(hub_id)

    def discard(self, hub_id: str) -> None:
        """Delete an interrupted download; raise `download_busy` or `download_forbidden`."""
        _refuse_if_public(hub_id)
        self.downloads.discard(hub_id)

    def add(self, folder: str) -> Item:
        """Store a model's path under its name; raise if it is damaged, or `download_forbidden`."""
        _refuse_if_public(folder)
        model = registry.find(folder)
        item = catalogue.describe(model)
        if item.problem is not None:
            raise item.problem
        return item

    def add_lora(self, file: str) -> LoraItem:
        """Store a LoRA's path; raise `lora_missing`, `lora_damaged` or `download_forbidden`."""
        _refuse_if_public(file)
        return describe_lora(LORAS.recorded(LORAS.add(Path(file))))

    @contextlib.contextmanager
    def receiving(self, name: str) -> Iterator[Path]:
        """Receive a file as `shelf.receiving` does; raise also `download_forbidden`."""
        _refuse_if_public(name)
        with shelf.receiving(name) as path:
            yield path

    def configure(self, name: str) -> None:
        """Download the configurations that a single file lacks, and put them beside it.

        Raise `model_missing`, `model_unrecognised` or `download_…`.
        """
        _refuse_if_public(name)
        model = registry.find(name)
        source = configuration_source(model.path)
        if isinstance(source, str):
            fetch_configurations(ask(source), model.path.with_suffix(""))

    def delete(self, name: str) -> int:
        """Delete a model or LoRA that was downloaded or dropped; return the freed bytes.

        Raise `model_missing`, `model_kept` (the user's own), `download_busy`, `download_forbidden`.
        """
        _refuse_if_public(name)
        for item in catalogue.items():
            if item.id == name:
                return download.delete(item.id, item.path)
        return delete_lora(name)


def _managed(item: Item) -> ManagedModel:
    return ManagedModel(
        item=item,
        fits=item.fitting == next(iter(item.needs)) if item.needs else None,
        probe=newest_report(item.weights_sha256) if item.weights_sha256 else None,
    )


def _may_download(hub_id: str) -> bool:
    """Tell whether a model may be downloaded: on a public page only those its owner lists."""
    return not is_public() or hub_id.partition("@")[0] in (allowed_models() or ())


def _refuse_if_public(name: str) -> None:
    if is_public():
        raise ModelError("download_forbidden", value=name[:80])
