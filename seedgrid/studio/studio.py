"""Studio: starts what is asked for. Nobody else resolves, plans or submits.

It knows nothing of screens. Nothing is loaded and no folder is made before the first picture is
asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from seedgrid.core import request as requests
from seedgrid.core.advice import Advice, advise
from seedgrid.core.card import ModelCard
from seedgrid.core.checks import parse_start
from seedgrid.core.entry import Entry
from seedgrid.core.errors import ModelError, RunError
from seedgrid.core.finals import STRENGTHS, decoding_bytes, finals, needs_tiles
from seedgrid.core.loras import read_scale, read_tags
from seedgrid.core.notices import Notice
from seedgrid.core.plan import Job, plan_grid, plan_refine
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.recipe import LOCK_WIDTHS, Lora, Recipe
from seedgrid.core.request import Request
from seedgrid.core.seeds import draw_seed
from seedgrid.core.turbo import quicken
from seedgrid.core.variations import refine
from seedgrid.core.words import Vocabulary
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.probe_results import ProbeReport, advised_width
from seedgrid.diffusion.processor import has_fast_bfloat16
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.models.loras import SUFFIX, find_lora, take_lora
from seedgrid.pictures import Pictures, StudioPicture
from seedgrid.storage import starts
from seedgrid.studio.options import AnyPicture, RunOptions, Seeds, Settings, is_id, read_seeds
from seedgrid.studio.parts import Parts

if TYPE_CHECKING:
    from seedgrid.library import Library

logger = logging.getLogger(__name__)

_OWNER: Final = "studio"
_NUM_VARIATIONS: Final = 4


class Studio(Parts):
    """A model, an engine and a library, ready to paint. Safe to use from any thread.

    What it is made of, and what it is told, is described at `Parts`.
    """

    def grid(
        self,
        prompt: str,
        seeds: Seeds = "0-3",
        *,
        loras: Sequence[str] = (),
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Pictures:
        """Paint one prompt on several seeds and wait for the pictures.

        Args:
            prompt: The words.
            seeds: One picture for each.
            loras: Files or names of LoRAs, with a scale as in `"fox.safetensors=0.8"`; a prompt may
                name them too, as `<lora:fox:0.8>`.
            fresh: Compute even what the library remembers.
            turbo: Answer what is left open for speed; the recipe says how.
            **settings: See `Settings`.

        Raises:
            InputError: What was asked for cannot be; nothing was started.
            RunError: It was started and did not succeed; finished pictures are in the library.
            LibraryError: The pictures cannot be kept.
        """
        return self.matrix([prompt], seeds, loras=loras, fresh=fresh, turbo=turbo, **settings)

    def refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        prompt: str | None = None,
        fresh: bool = False,
    ) -> Pictures:
        """Vary the words or settings of a picture on its own seed and wait for the variations.

        Args:
            picture: See `AnyPicture`.
            suffixes: One picture each: words that are appended to the prompt (`", artsy"`), or a
                setting (`"guidance 3"`, see `core.variations`); the guide's four by default.
            prompt: Another prompt to append them to; the picture's own by default.
            fresh: Compute even what the library remembers.

        Raises:
            SeedGridError: As `grid`.
        """
        return _wait(self.start_refine(picture, suffixes, prompt=prompt, fresh=fresh))

    def matrix(
        self,
        prompts: Sequence[str],
        seeds: Seeds,
        *,
        loras: Sequence[str] = (),
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Pictures:
        """Paint every prompt on every seed: one row a prompt, one column a seed, row by row.

        Raises:
            SeedGridError: As `grid`.
        """
        request = Request(prompt="", seeds=read_seeds(seeds), **settings)
        if request.start:
            request = replace(request, start=self.take_start(request.start))
        request = replace(request, loras=self.take_loras(loras))
        return _wait(self.start_grid(request, prompts, turbo=turbo, fresh=fresh))

    def start_grid(
        self,
        request: Request,
        prompts: Sequence[str] | None = None,
        *,
        turbo: bool = False,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start the first round of a new work; returns at once.

        Args:
            request: What was asked for.
            prompts: In place of its own, each on every seed.
            turbo: Answer what is left open for speed; the recipe says how.
            **options: See `RunOptions`.

        Raises:
            InputError: What was asked for cannot be, by field; nothing was started.
            ModelError: As `card`.
            RunError: `too_many_runs` of this owner.
            LibraryError: The pictures cannot be kept.
        """
        request = self._with_start(request, options.get("library"))
        card = self._card_for(request, turbo, options.get("placement"))
        recipes = _resolve(request, prompts, card)
        asked = request.lock_width
        notices = _width_notices(recipes, card.lock_width) if asked is None else _odd(recipes)
        told = advise(request, card, also=prompts or ())
        # A size is chosen on purpose: it is said at its field, and not of each run again.
        notices += tuple(each.notice for each in told if each.field != "size")
        return self._submit(plan_grid(recipes), notices, options)

    def start_refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        prompt: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a round of variations of a picture on its own seed; returns at once.

        A file from elsewhere joins the library, so that the tree of choices is whole.

        Raises:
            SeedGridError: As `start_grid`.
        """
        parent = self.find(picture, options.get("library"))
        vocabulary = self._vocabulary(parent.recipe)
        recipes = refine(parent.recipe, suffixes, self.card, prompt=prompt, vocabulary=vocabulary)
        return self._go_on(self._joined(picture, parent, options), recipes, options)

    def final(
        self,
        picture: AnyPicture,
        scale: int = 2,
        *,
        strengths: Sequence[float] = STRENGTHS,
        fresh: bool = False,
    ) -> Pictures:
        """Make a picture large, on its own seed and words, and wait for it.

        Args:
            picture: See `AnyPicture`.
            scale: 2 or 4 times as wide and high.
            strengths: How much is painted anew, one picture each; `[0.3]` gives one.
            fresh: Compute even what the library remembers.

        Raises:
            SeedGridError: As `grid`.
        """
        return _wait(self.start_final(picture, scale, strengths=strengths, fresh=fresh))

    def start_final(
        self,
        picture: AnyPicture,
        scale: int = 2,
        *,
        strengths: Sequence[float] = STRENGTHS,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a round of a picture's large finals; returns at once.

        Where decoding in one piece would take too much memory it is done in tiles, which is told,
        and stands in the passport.

        Raises:
            SeedGridError: As `start_grid`; `picture_lost` when its pixels are gone.
        """
        library = options.get("library")
        parent = self.find(picture, library)
        card = self.card(requests.ask_again(parent.recipe).model)
        start = self.take_start(parent, library)
        recipes = finals(parent.recipe, card, start=start, scale=scale, strengths=strengths)
        notices: tuple[Notice, ...] = ()
        if needs_tiles(recipes[0], card):
            wanted = f"{decoding_bytes(recipes[0], card) / 1e9:.1f}"
            notices = (Notice("final_tiles", value=wanted),)
            placement = options.get("placement") or self._placement
            options["placement"] = replace(placement, vae_tiling=True)
        jobs = plan_refine(self._joined(picture, parent, options), recipes)
        return self._submit(jobs, notices, options)

    def start_variations(
        self, picture: AnyPicture, *, weight: float, **options: Unpack[RunOptions]
    ) -> Run:
        """Start a round around a picture's noise, a little way towards that of new seeds.

        Args:
            picture: See `AnyPicture`.
            weight: How far to go; see `core.request.SUBTLE` and `STRONG`.
            **options: See `RunOptions`.

        Raises:
            SeedGridError: As `start_grid`.
        """
        parent = self.find(picture, options.get("library"))
        seeds = [draw_seed() for _ in range(_NUM_VARIATIONS)]
        recipes = requests.noise_variations(parent.recipe, seeds, weight=weight)
        return self._go_on(self._joined(picture, parent, options), recipes, options)

    def start_again(
        self, entries: Sequence[Entry], parent: Entry | None, **options: Unpack[RunOptions]
    ) -> Run:
        """Make a round once more, its recipes as they are; the library's memory is not asked.

        Args:
            entries: The pictures of the round.
            parent: What they were made from, if it is still there; else they start a new work.
            **options: See `RunOptions`.

        Raises:
            SeedGridError: As `start_grid`.
        """
        recipes = [entry.recipe for entry in entries]
        jobs = plan_refine(parent, recipes) if parent else plan_grid(recipes)
        return self._submit(jobs, (), {**options, "fresh": True})

    def take_start(self, picture: AnyPicture, library: Library | None = None) -> str:
        """Keep a picture, of ours or any other, to begin others from.

        Args:
            picture: See `AnyPicture`; also a PNG, JPEG or WebP file without a recipe.
            library: Where it is kept; the studio's own by default.

        Returns:
            The SHA-256 of its pixels, as `Request.start` wants it.

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
        return starts.keep((library or self.library).starts, pixels)

    def take_loras(self, named: Sequence[str]) -> tuple[Lora, ...]:
        """Return LoRAs as recipes hold them; their files are known by their names from now on.

        Args:
            named: Files or names, each with a scale as in `fox.safetensors=0.8`, or 1.

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

    def _with_start(self, request: Request, library: Library | None) -> Request:
        """Return the request with the digest of its start: no path is followed here."""
        if not request.start:
            return request
        start = parse_start(request.start)
        if starts.place_of(start) is None:
            entry = (library or self.library).find(start)
            pixels = png.read_pixels(entry.path)
            start = starts.keep((library or self.library).starts, pixels)
        return replace(request, start=start)

    def resolve(
        self,
        request: Request,
        prompts: Sequence[str] | None = None,
        *,
        turbo: bool = False,
        placement: Placement | None = None,
    ) -> tuple[Recipe, ...]:
        """Turn a request into recipes; with turbo what it leaves open is answered for speed.

        A width that was left open is one at which the lock was not found to fail here.

        Args:
            request: What was asked for.
            prompts: In place of its own, each on every seed.
            turbo: See `core.turbo`.
            placement: Where they will be painted; the studio's own by default.

        Raises:
            InputError: What was asked for cannot be, by field.
            ModelError: As `card`.
        """
        request = self._with_start(request, None)
        return _resolve(request, prompts, self._card_for(request, turbo, placement))

    def advise(
        self, request: Request, *, suffixes: Sequence[str] = (), language: str = "en"
    ) -> tuple[Advice, ...]:
        """Say what is to know of a request before anything is painted.

        Args:
            request: What would be asked for.
            suffixes: What would be appended to its prompt.
            language: In which the model's words are named.

        Raises:
            ModelError: As `card`.
        """
        return advise(request, self.card(request.model), suffixes=suffixes, language=language)

    def probe_request(self, request: Request, placement: Placement) -> ProbeReport:
        """Test whether the lock holds for what a request would give, and wait for the answer.

        A width that was left open is the model's own, whatever was found before.

        Args:
            request: Its words do not matter.
            placement: Where it would be painted.

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

    def _card_for(self, request: Request, turbo: bool, placement: Placement | None) -> ModelCard:
        """Return the card that answers what a request leaves open."""
        card = self.card(request.model)
        if not turbo:
            return card
        device = (placement or self._placement).device
        return quicken(card, request, has_fast_bfloat16=has_fast_bfloat16(device))

    def _vocabulary(self, recipe: Recipe) -> Vocabulary | None:
        """The words that a recipe's model declares; None where it is not here, or says nothing."""
        try:
            return self.card(requests.ask_again(recipe).model).vocabulary
        except ModelError:
            return None

    def _joined(self, picture: AnyPicture, parent: Entry, options: RunOptions) -> Entry:
        """Return the parent as it is in the library: a file from elsewhere is taken in first."""
        if not isinstance(picture, str | Path) or is_id(picture):
            return parent
        return (options.get("library") or self.library).add_png(png.read_bytes(parent.path))

    def _go_on(self, parent: Entry, recipes: Sequence[Recipe], options: RunOptions) -> Run:
        """Start a round that goes on from a picture, in batches in which the lock holds here."""
        provable = [_provable(recipe) for recipe in recipes]
        notices = _width_notices(provable, parent.recipe.lock_width)
        return self._submit(plan_refine(parent, provable), notices, options)

    def _submit(self, jobs: Sequence[Job], notices: Sequence[Notice], options: RunOptions) -> Run:
        run = self.engine.submit(
            jobs,
            owner=options.get("owner", _OWNER),
            address=options.get("address", ""),
            fresh=options.get("fresh", False),
            library=options.get("library") or self.library,
            placement=options.get("placement"),
            notices=notices,
        )
        self.stop_probing()
        return run


def _resolve(
    request: Request, prompts: Sequence[str] | None, card: ModelCard
) -> tuple[Recipe, ...]:
    """Turn a request into recipes, each prompt on every seed."""
    words = [request.prompt] if prompts is None else prompts
    wanted = [_with_loras(replace(request, prompt=prompt)) for prompt in words]
    recipes = tuple(recipe for one in wanted for recipe in requests.resolve(one, card))
    if request.lock_width is not None:
        return recipes
    return tuple(_provable(recipe) for recipe in recipes)


def _with_loras(request: Request) -> Request:
    """Return the request with the LoRAs that its prompt names, as `<lora:fox:0.8>`, found here."""
    prompt, tags = read_tags(request.prompt)
    found = [(find_lora(name), scale) for name, scale in tags]
    loras = (Lora(id=each.id, weights_sha256=each.sha256, scale=scale) for each, scale in found)
    return replace(request, prompt=prompt, loras=(*request.loras, *loras))


def _provable(recipe: Recipe) -> Recipe:
    """Return the recipe at the width at which the lock was found to hold here, if it is less.

    The width of a portable picture cannot show, so its recipe is the same on every machine, too.
    """
    if recipe.is_portable:
        return recipe
    width = advised_width(recipe.model.weights_sha256, recipe.dtype, recipe.lock_width)
    return recipe.model_copy(update={"lock_width": width})


def _width_notices(recipes: Sequence[Recipe], usual: int) -> tuple[Notice, ...]:
    """Say that the batches are narrower than their author expects, where they are."""
    widths = {recipe.lock_width for recipe in recipes if recipe.lock_width < usual}
    return tuple(Notice("width_lowered", width=width, usual=usual) for width in sorted(widths))


def _odd(recipes: Sequence[Recipe]) -> tuple[Notice, ...]:
    """Say of a width that is not offered any more why it is not."""
    widths = {recipe.lock_width for recipe in recipes} - set(LOCK_WIDTHS)
    return tuple(Notice("width_odd", width=width) for width in sorted(widths))


def _wait(run: Run) -> Pictures:
    """Wait for a run; Ctrl+C stops it and keeps what is finished."""
    try:
        pictures = [StudioPicture(entry) for entry in run.result()]
    except BaseException:
        run.cancel()
        raise
    for notice in run.notices:
        logger.warning("%s", notice)
    return Pictures(pictures, run.notices)
