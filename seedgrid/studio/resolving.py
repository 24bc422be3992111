"""What is asked for becomes recipes: starts, LoRAs and widths are found, nothing is painted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seedgrid.core import request as requests
from seedgrid.core.advice import Advice, advise
from seedgrid.core.card import ModelCard
from seedgrid.core.checks import parse_start
from seedgrid.core.errors import InputError, RunError
from seedgrid.core.loras import read_scale, read_tags
from seedgrid.core.recipe import Lora, Recipe, Upscaler
from seedgrid.core.request import Request
from seedgrid.core.turbo import turbo_card
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.probe_results import ProbeReport, advised_width
from seedgrid.diffusion.processor import has_fast_bfloat16
from seedgrid.formats import png
from seedgrid.models.files import SUFFIX
from seedgrid.models.loras import find_lora, take_lora
from seedgrid.models.upscalers import find_upscaler, known_upscalers, take_upscaler
from seedgrid.storage import starts
from seedgrid.studio.checking import Checking
from seedgrid.studio.options import AnyPicture, is_id

if TYPE_CHECKING:
    from seedgrid.library import Library


class Resolving(Checking):
    """A studio that knows what would be painted."""

    def resolve(self, request: Request, *, turbo: bool = False) -> tuple[Recipe, ...]:
        """Turn a request into recipes; with turbo what it leaves open is answered for speed.

        A width that was left open is one at which the lock was not found to fail here.

        Raises:
            InputError: What was asked for cannot be, by field.
            ModelError: As `card`.
        """
        request = self._with_start(request, None)
        return resolve_prompts(request, None, self._card_for(request, turbo, None))

    def advise(
        self, request: Request, *, suffixes: Sequence[str] = (), language: str = "en"
    ) -> tuple[Advice, ...]:
        """Say what is to know of a request before anything is painted."""
        return advise(request, self.card(request.model), suffixes=suffixes, language=language)

    def probe_request(self, request: Request, placement: Placement) -> ProbeReport:
        """Test whether the lock holds for what a request would give, and wait for the answer.

        A width that was left open is the model's own, whatever was found before.

        Raises:
            SeedGridError: As `start_grid`; `run_unexpected` where the backend cannot tell.
        """
        recipe = requests.resolve(request, self.card(request.model))[0]
        try:
            report = self.probe(recipe, placement).result()
        finally:
            self.stop_probing()
        if report is None:
            raise RunError("run_unexpected", reason="this backend has no probe")
        return report

    def take_start(self, picture: AnyPicture, library: Library | None = None) -> str:
        """Keep a picture, of ours or any other, to begin others from.

        Args:
            picture: See `AnyPicture`; also a PNG, JPEG or WebP file without a recipe.
            library: Where it is kept; the studio's own by default.

        Raises:
            PictureError: It is missing, or no picture.
            LibraryError: It cannot be kept.
        """
        if isinstance(picture, str) and starts.place_of(picture) is not None:
            return picture
        if isinstance(picture, str | Path) and not is_id(picture):
            pixels = starts.read_picture(png.read_bytes(Path(picture).expanduser()))
        else:
            pixels = png.read_pixels(self.find(picture, library).path)
        return (library or self.library).keep_start(pixels)

    def take_loras(self, named: Sequence[str]) -> tuple[Lora, ...]:
        """Return LoRAs as recipes hold them; their files are known by their names from now on.

        Raises:
            ModelError: One is not there, or is no LoRA.
            InputError: A scale cannot be.
        """
        loras = []
        for text in named:
            name, equals, scale = text.rpartition("=")
            file = name if equals else text
            found = take_lora(Path(file)) if file.endswith(SUFFIX) else find_lora(file)
            number = read_scale(scale) if equals else 1.0
            loras.append(Lora(id=found.id, weights_sha256=found.sha256, scale=number))
        return tuple(loras)

    def upscalers(self, card: ModelCard | None = None) -> tuple[str, ...]:
        """Return the names of the networks that enlarge; on a public page those that it offers.

        Args:
            card: Of the model whose pictures they are to enlarge: its own network comes first.
        """
        own = (card.upscaler,) if card and card.upscaler else ()
        return tuple(dict.fromkeys((*own, *known_upscalers())))

    def find_upscaler(self, name: str) -> Upscaler:
        """Return a network by its name; no path is followed.

        Raises:
            SeedGridError: It is not there, no network, or not offered on a public page.
        """
        return find_upscaler(name)

    def take_upscaler(self, named: str) -> Upscaler:
        """Return a network as recipes hold it; its file is known by its name from now on.

        Raises:
            ModelError: It is not there, or no network.
        """
        return take_upscaler(Path(named)) if named.endswith(SUFFIX) else find_upscaler(named)

    def _with_start(self, request: Request, library: Library | None) -> Request:
        """Return the request with the digest of its start: no path is followed here.

        Raises:
            InputError: `start_unknown`, by the field `start`: it is not here any more.
        """
        if not request.start:
            return request
        start = parse_start(request.start)
        if starts.place_of(start) is None:
            try:
                entry = (library or self.library).find(start)
            except InputError as error:
                if error.code != "picture_unknown":
                    raise
                raise InputError("start_unknown", field="start", value=start[:12]) from error
            pixels = png.read_pixels(entry.path)
            start = (library or self.library).keep_start(pixels)
        return replace(request, start=start)

    def _card_for(self, request: Request, turbo: bool, placement: Placement | None) -> ModelCard:
        card = self.card(request.model)
        if not turbo:
            return card
        device = (placement or self.placement).device
        return turbo_card(card, request, has_fast_bfloat16=has_fast_bfloat16(device))


def resolve_prompts(
    request: Request, prompts: Sequence[str] | None, card: ModelCard
) -> tuple[Recipe, ...]:
    """Turn a request into recipes, each prompt on every seed."""
    words = [request.prompt] if prompts is None else prompts
    here: dict[str, Lora] = {}
    wanted = [_with_loras(replace(request, prompt=prompt), here) for prompt in words]
    recipes = tuple(recipe for one in wanted for recipe in requests.resolve(one, card))
    if request.lock_width is not None:
        return recipes
    return tuple(provable(recipe) for recipe in recipes)


def _with_loras(request: Request, here: dict[str, Lora]) -> Request:
    """Return the request with the LoRAs that its prompt names, as `<lora:fox:0.8>`.

    Args:
        request: With what was typed.
        here: Those that were found before, by their names: each is read once, however often it is
            named.
    """
    prompt, tags = read_tags(request.prompt)
    for name, _ in tags:
        if name not in here:
            found = find_lora(name)
            here[name] = Lora(id=found.id, weights_sha256=found.sha256)
    loras = (here[name].model_copy(update={"scale": scale}) for name, scale in tags)
    return replace(request, prompt=prompt, loras=(*request.loras, *loras))


def provable(recipe: Recipe) -> Recipe:
    """Return the recipe at the width at which the lock was found to hold here, if it is less.

    The width of a portable picture cannot show, so its recipe is the same on every machine, too.
    """
    if recipe.is_portable:
        return recipe
    width = advised_width(recipe.model.weights_sha256, recipe.dtype, recipe.lock_width)
    return recipe.model_copy(update={"lock_width": width})
