"""Every way to start a run. Nobody else plans or submits; nothing here waits for a picture."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Unpack

from seedgrid.core import request as requests
from seedgrid.core.advice import advise
from seedgrid.core.entry import Entry
from seedgrid.core.errors import ModelError
from seedgrid.core.finals import (
    STRENGTHS,
    check_has_words,
    decoding_bytes,
    enlarged,
    finals,
    needs_tiles,
)
from seedgrid.core.notices import Notice
from seedgrid.core.plan import Job, plan_grid, plan_refine
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.recipe import LOCK_WIDTHS, Recipe, Upscaler
from seedgrid.core.request import Request
from seedgrid.core.seeds import draw_seed
from seedgrid.core.tiles import Tile, cut
from seedgrid.core.variations import refine
from seedgrid.core.words import Vocabulary
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.models.upscalers import needed_bytes
from seedgrid.studio.options import AnyPicture, RunOptions, is_id
from seedgrid.studio.resolving import Resolving, provable, resolve_prompts

_OWNER: Final = "studio"
_NUM_VARIATIONS: Final = 4


class Starting(Resolving):
    """A studio that starts runs; each `start_` returns at once."""

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
        recipes = resolve_prompts(request, prompts, card)
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
        """
        parent = self.find(picture, options.get("library"))
        check_has_words(parent.recipe)
        vocabulary = self._vocabulary(parent.recipe)
        recipes = refine(parent.recipe, suffixes, self.card, prompt=prompt, vocabulary=vocabulary)
        return self._go_on(self._joined(picture, parent, options), recipes, options)

    def start_final(
        self,
        picture: AnyPicture,
        scale: int = 2,
        *,
        strengths: Sequence[float] = STRENGTHS,
        upscaler: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a round of a picture's large finals; returns at once.

        Where decoding in one piece would take too much memory it is done in tiles, which is told,
        and stands in the passport.

        Args:
            picture: See `AnyPicture`.
            scale: 2 or 4 times as wide and high.
            strengths: How much is painted anew, a picture each.
            upscaler: The name or .safetensors file of a network that enlarges in place of that; a
                model that does not paint larger has one of its own, which makes one picture.
            **options: See `RunOptions`.

        Raises:
            SeedGridError: As `start_grid`; `picture_lost` when its pixels are gone.
        """
        library = options.get("library")
        parent = self.find(picture, library)
        if tuple(strengths) == STRENGTHS:
            upscaler = upscaler or self._own_upscaler(parent.recipe)
        if upscaler:
            network = self.take_upscaler(upscaler)
            start = self.take_start(parent, library)
            recipe = enlarged(parent.recipe, network, start=start, scale=scale)
            jobs = plan_refine(self._joined(picture, parent, options), [recipe])
            return self._submit(jobs, [_tiles_notice(parent.recipe, recipe, network)], options)
        card = self.card(requests.ask_again(parent.recipe).model)
        start = self.take_start(parent, library)
        recipes = finals(parent.recipe, card, start=start, scale=scale, strengths=strengths)
        notices: tuple[Notice, ...] = ()
        if needs_tiles(recipes[0], card):
            wanted = f"{decoding_bytes(recipes[0], card) / 1e9:.1f}"
            notices = (Notice("final_tiles", value=wanted),)
            placement = options.get("placement") or self.placement
            options["placement"] = replace(placement, vae_tiling=True)
        jobs = plan_refine(self._joined(picture, parent, options), recipes)
        return self._submit(jobs, notices, options)

    def start_variations(
        self, picture: AnyPicture, *, weight: float, **options: Unpack[RunOptions]
    ) -> Run:
        """Start a round around a picture's noise, a little way towards that of new seeds."""
        parent = self.find(picture, options.get("library"))
        check_has_words(parent.recipe)
        seeds = [draw_seed() for _ in range(_NUM_VARIATIONS)]
        recipes = requests.noise_variations(parent.recipe, seeds, weight=weight)
        return self._go_on(self._joined(picture, parent, options), recipes, options)

    def start_again(
        self, entries: Sequence[Entry], parent: Entry | None, **options: Unpack[RunOptions]
    ) -> Run:
        """Compute a round once more, its recipes as they are, and compare: `Run.differing`.

        The library's memory is not asked.
        """
        recipes = [entry.recipe for entry in entries]
        jobs = plan_refine(parent, recipes) if parent else plan_grid(recipes)
        expected = [entry.pixels_sha256 for entry in entries]
        return self._submit(jobs, (), {**options, "fresh": True}, expected=expected)

    def _vocabulary(self, recipe: Recipe) -> Vocabulary | None:
        """The words that a recipe's model declares; None where it is not here, or says nothing."""
        try:
            return self.card(requests.ask_again(recipe).model).vocabulary
        except ModelError:
            return None

    def _own_upscaler(self, recipe: Recipe) -> str:
        """The network of a model that does not paint larger than it was made for, if it has one."""
        card = self.card(requests.ask_again(recipe).model)
        return "" if card.enlarges else card.upscaler

    def _joined(self, picture: AnyPicture, parent: Entry, options: RunOptions) -> Entry:
        """Return the parent as it is in the library: a file from elsewhere is taken in first."""
        if not isinstance(picture, str | Path) or is_id(picture):
            return parent
        return (options.get("library") or self.library).add_png(png.read_bytes(parent.path))

    def _go_on(self, parent: Entry, recipes: Sequence[Recipe], options: RunOptions) -> Run:
        """Start a round that goes on from a picture, in batches in which the lock holds here."""
        narrowed = [provable(recipe) for recipe in recipes]
        notices = _width_notices(narrowed, parent.recipe.lock_width)
        return self._submit(plan_refine(parent, narrowed), notices, options)

    def _submit(
        self,
        jobs: Sequence[Job],
        notices: Sequence[Notice],
        options: RunOptions,
        *,
        expected: Sequence[str] = (),
    ) -> Run:
        self.check_offered([job.recipe for job in jobs])
        run = self.engine.submit(
            jobs,
            owner=options.get("owner", _OWNER),
            address=options.get("address", ""),
            fresh=options.get("fresh", False),
            library=options.get("library") or self.library,
            placement=options.get("placement"),
            expected=expected,
            notices=notices,
        )
        self.stop_probing()
        return run


def _width_notices(recipes: Sequence[Recipe], usual: int) -> tuple[Notice, ...]:
    """Say that the batches are narrower than their author expects, where they are."""
    widths = {recipe.lock_width for recipe in recipes if recipe.lock_width < usual}
    return tuple(Notice("width_lowered", width=width, usual=usual) for width in sorted(widths))


def _tiles_notice(parent: Recipe, recipe: Recipe, network: Upscaler) -> Notice:
    """Say how much memory a network takes for one of how many tiles."""
    tiles = cut(parent.width, parent.height)
    scale = recipe.width // parent.width
    most = max((each.with_margin(parent.width, parent.height) for each in tiles), key=_area)
    wanted = max(0.1, needed_bytes(network, _area(most) * scale**2) / 1e9)
    return Notice("upscaler_tiles", value=network.id, tiles=len(tiles), size=f"{wanted:.1f}")


def _area(tile: Tile) -> int:
    return (tile.right - tile.left) * (tile.bottom - tile.top)


def _odd(recipes: Sequence[Recipe]) -> tuple[Notice, ...]:
    """Say of a width that is not offered any more why it is not."""
    widths = {recipe.lock_width for recipe in recipes} - set(LOCK_WIDTHS)
    return tuple(Notice("width_odd", width=width) for width in sorted(widths))
