"""Studio: the workflow for Python, the command line and the page.

Engine, library, models and verifier are made at their first use, so bad input is refused before a
folder is made, a thread started or a model loaded. `studio.grid` waits for its pictures,
`studio.start_grid` does not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from seedgrid.core.card import ModelCard, Vocabulary
from seedgrid.core.checks import check_count, draw_seed
from seedgrid.core.errors import InputError, ModelError, Notice
from seedgrid.core.finals import STRENGTHS, enlarged, finals, tiles_notices
from seedgrid.core.picture import Entry
from seedgrid.core.plan import Job, plan_again, plan_grid, plan_refine
from seedgrid.core.prompts import GUIDE_SUFFIXES, open_lists
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Advice, Request, advise, ask_again
from seedgrid.core.text import expanded
from seedgrid.core.variables import default_library, default_model, is_public
from seedgrid.core.variations import noise_variations, refine, words_of
from seedgrid.diffusion.backend import Backend, ManyPainters, Placement, like_passport
from seedgrid.engine import UNBOUNDED, Bounds, Engine, Run
from seedgrid.formats import png
from seedgrid.formats.own_texts import WorkPicture
from seedgrid.storage import starts
from seedgrid.studio.model_manager import ModelManager
from seedgrid.studio.resolving import (
    AnyMask,
    AnyPicture,
    Pictures,
    RunOptions,
    Seeds,
    at_advised_width,
    check_offered,
    check_starts,
    find_picture,
    has_starts,
    is_id,
    keep_start,
    list_lines,
    make_region,
    read_seeds,
    resolve_prompts,
    width_notices,
    with_start,
)
from seedgrid.studio.verifier import Verifier

if TYPE_CHECKING:
    from seedgrid.export.film import Film
    from seedgrid.library import Library

logger = logging.getLogger(__name__)
Part = TypeVar("Part")

STARTS: Final = "starts"  # The folder of a library with the start pictures and masks
LISTS: Final = "styles"  # The folder of a library with the artist's word lists
_RUNS: Final = 1000  # The most runs of each owner, waiting or running
_OWNER: Final = "studio"  # The owner of runs that name none
_NUM_VARIATIONS: Final = 4
_MIN_DECODING_SHARE: Final = 0.5  # Live runs use a tiny decoder if decoding takes this share
_TINY_SAVES: Final = 0.6  # Share of decoding time that a tiny decoder saves


class Studio:
    """A model, an engine, a library and a verifier, ready to paint. Safe to use from any thread.

    Args:
        model: `"bundled"`, a folder, a hub id, or a .safetensors file; by default
            `SEEDGRID_MODEL`, else `"bundled"`.
        library: The folder that keeps the pictures; by default `SEEDGRID_LIBRARY`, else the
            system's place for user data.
        device: `"auto"`, `"cpu"`, `"cuda"`, …
        backend: What paints; by default diffusers.
        placement: Where and how to compute; by default on `device`, without previews.
        runs_per_owner: How many runs each owner may have waiting or running.
        bounds: Further limits for visitors of a public page.
        on_lost: Called when the engine cannot go on: the process should end.
    """

    def __init__(
        self,
        model: str | None = None,
        library: str | Path | None = None,
        device: str = "auto",
        *,
        backend: Backend | ManyPainters | None = None,
        placement: Placement | None = None,
        runs_per_owner: int = _RUNS,
        bounds: Bounds = UNBOUNDED,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.model = model or default_model()
        self.library_folder = expanded(library or default_library()).absolute()
        starts.add_folder(self.library_folder / STARTS)
        # For runs that name no placement
        self.placement = placement or Placement(device=device, previews=False)
        self._making = threading.RLock()
        self._components: dict[type, Any] = {}  # By class, made at their first use
        self._backend = backend
        self._engine_options: dict[str, Any] = {
            "runs_per_owner": runs_per_owner,
            "bounds": bounds,
            "on_lost": on_lost,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Components

    @property
    def backend(self) -> Backend | ManyPainters:
        """What paints: by default DiffusersBackend, which is imported at its first use."""
        with self._making:
            if self._backend is None:
                from seedgrid.diffusion.deferred import DeferredBackend

                self._backend = DeferredBackend()
            return self._backend

    def _get_or_make(self, kind: type[Part], make: Callable[[], Part]) -> Part:
        """Return the component of this class; make it at its first use."""
        with self._making:
            if kind not in self._components:
                self._components[kind] = make()
            component: Part = self._components[kind]
            return component

    @property
    def library(self) -> Library:
        """Where the pictures are stored; its folder is made at its first use."""
        from seedgrid.library import Library

        return self._get_or_make(Library, lambda: Library(self.library_folder))

    @property
    def engine(self) -> Engine:
        """What runs the jobs; its threads start at its first use."""
        return self._get_or_make(
            Engine, lambda: Engine(self.backend, placement=self.placement, **self._engine_options)
        )

    @property
    def model_manager(self) -> ModelManager:
        """The models, LoRAs and upscaler networks on this machine, and downloads."""
        return self._get_or_make(ModelManager, ModelManager)

    @property
    def verifier(self) -> Verifier:
        """Verifies pictures and probes the lock, between two batches of the engine."""
        return self._get_or_make(Verifier, lambda: Verifier(self.engine, self.card))

    def begin_to_close(self) -> None:
        """Stop what is running and accept nothing more; `close` waits for the end."""
        if Engine in self._components:
            self.engine.begin_to_close()

    def close(self) -> None:
        """Stop what is running, save what is finished, and free the model."""
        if ModelManager in self._components:
            self.model_manager.downloads.close()
        if Engine in self._components:
            self.engine.close()

    # Painting, and waiting for the pictures

    def grid(
        self,
        prompt: str,
        seeds: Seeds = "0-3",
        *,
        loras: Sequence[str] = (),
        fresh: bool = False,
        **settings: Any,  # noqa: ANN401 (those of a request)
    ) -> Pictures:
        """Paint one prompt on several seeds and wait for the pictures.

        Args:
            prompt: The words.
            seeds: `"0-3"`, `7` or `[7, 11, 42]`; one picture for each.
            loras: Files or names of LoRAs, with a scale as in `"fox.safetensors=0.8"`; a prompt may
                name them too, as `<lora:fox:0.8>`.
            fresh: Compute pictures that the library already has, too.
            **settings: Attributes of `Request`, such as `guidance_scale=3` or `width=512`.

        Raises:
            InputError: The request is wrong; nothing was started.
            RunError: The run was refused, or failed; finished pictures are in the library.
            LibraryError: The pictures cannot be stored.
        """
        return self.matrix([prompt], seeds, loras=loras, fresh=fresh, **settings)

    def matrix(
        self,
        prompts: Sequence[str],
        seeds: Seeds,
        *,
        loras: Sequence[str] = (),
        fresh: bool = False,
        **settings: Any,  # noqa: ANN401 (those of a request)
    ) -> Pictures:
        """Paint every prompt on every seed: one row a prompt, one column a seed, row by row."""
        request = Request(prompt="", seeds=read_seeds(seeds), **settings)
        if request.start:
            request = replace(request, start=self.take_start(request.start))
        if loras:
            request = replace(request, loras=self.model_manager.find_loras(loras))
        return _wait(self.start_grid(request, prompts, fresh=fresh))

    def refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        also: Sequence[AnyPicture] = (),
        prompt: str | None = None,
        hold: float | None = None,
        only: AnyMask | None = None,
        feather: int | None = None,
        fresh: bool = False,
    ) -> Pictures:
        """Vary the words or settings of a picture on its own seed and wait for the variations.

        Args:
            picture: See `AnyPicture`.
            suffixes: One picture each: words that are appended to the prompt (`", artsy"`), or a
                setting (`"guidance 3"`, see `core.variations`); the guide's four by default.
            also: Other pictures of the same work; the round has a row of variations for each.
            prompt: The prompt to append the suffixes to; the picture's own by default.
            hold: In this share of the steps, 0 to 0.8, the first ones, the latents are those of the
                picture, so that its composition stays.
            only: The mask of what may change, white on black: a file, or an array of shape (height,
                width) or (height, width, 3). Every other pixel stays.
            feather: How many pixels wide, inside the mask's edge, new and old pixels are mixed; by
                default a sixteenth of the shorter side.
            fresh: Compute pictures that the library already has, too.
        """
        how: dict[str, Any] = {"also": also, "hold": hold, "only": only, "feather": feather}
        return _wait(self.start_refine(picture, suffixes, prompt=prompt, **how, fresh=fresh))

    def final(
        self,
        picture: AnyPicture,
        scale: int = 2,
        *,
        strengths: Sequence[float] = STRENGTHS,
        upscaler: str | None = None,
        fresh: bool = False,
    ) -> Pictures:
        """Enlarge a picture, on its own seed and words, and wait; see `start_final`."""
        run = self.start_final(picture, scale, strengths=strengths, upscaler=upscaler, fresh=fresh)
        return _wait(run)

    def film(self, picture: AnyPicture, path: str | Path) -> Film:
        """Paint a picture again, wait for it, and write the previews of its steps as a film.

        The library has no previews, so this takes as long as a batch at its lock width. The
        library does not change.

        Args:
            picture: See `AnyPicture`.
            path: Ends in `.webp` or `.gif`; replaced if it exists.
        """
        from seedgrid.export.film import check_suffix, write_film

        path = expanded(path)
        check_suffix(path)  # Before anything is painted.
        film = self.verifier.start_film(self.find(picture)).result()
        write_film(film, path)
        return film

    # Starting runs: each `start_` returns at once

    def start_grid(
        self, request: Request, prompts: Sequence[str] | None = None, **options: Unpack[RunOptions]
    ) -> Run:
        """Start the first round of a new work; returns at once.

        Args:
            request: The request.
            prompts: Painted instead of the request's prompt, each on every seed.
            **options: See `RunOptions`.

        Raises:
            InputError: A field of the request is wrong; nothing was started.
            ModelError: As `card`.
            RunError: As `Engine.submit`, for example `too_many_runs`.
            LibraryError: The pictures cannot be stored.
        """
        request = with_start(request, lambda: options.get("library") or self.library)
        card = self.card(request.model)
        texts = self.with_lists([request.prompt] if prompts is None else prompts)
        recipes = resolve_prompts(request, texts, card)
        notices = () if request.lock_width else width_notices(recipes, card.lock_width)
        # The page shows advice on size and steps at those fields, so it is left out here.
        advice = advise(request, card, also=texts)
        notices += tuple(each.notice for each in advice if each.field not in ("size", "steps"))
        return self._submit(plan_grid(recipes), notices, options)

    def start_refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        also: Sequence[AnyPicture] = (),
        prompt: str | None = None,
        hold: float | None = None,
        only: AnyMask | None = None,
        feather: int | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a round of variations of a picture on its own seed; returns at once.

        See `refine`. A mask of another size is resized, with a notice. A parent that is a file is
        added to the library, so that the tree of variations is complete.
        """
        library = options.get("library")
        lines = self.with_lists(suffixes, field="vary")
        rows: list[tuple[Entry, Sequence[Recipe]]] = []
        notices: list[Notice] = []
        for each in (picture, *also):
            parent, ancestor_notices = self._painted_ancestor(self.find(each, library), library)
            region, mask_notices = make_region(
                only, feather, parent.recipe, lambda: library or self.library
            )
            recipes = refine(
                parent.recipe,
                lines,
                self.card,
                prompt=prompt,
                vocabulary=self._vocabulary(parent.recipe),
                hold=hold,
                region=region,
            )
            check_count((1 + len(also)) * len(recipes), field="vary")
            rows.append((self._add_if_file(each, parent, options), recipes))
            notices += (*ancestor_notices, *mask_notices)
        return self._submit_refinement(rows, options, notices)

    def start_variations(
        self, picture: AnyPicture, *, weight: float, **options: Unpack[RunOptions]
    ) -> Run:
        """Start four variations with noise of a new seed each; `weight` as in `NoiseShare`."""
        library = options.get("library")
        parent, notices = self._painted_ancestor(self.find(picture, library), library)
        seeds = [draw_seed() for _ in range(_NUM_VARIATIONS)]
        recipes = noise_variations(parent.recipe, seeds, weight=weight)
        rows = [(self._add_if_file(picture, parent, options), recipes)]
        return self._submit_refinement(rows, options, notices)

    def start_final(
        self,
        picture: AnyPicture,
        scale: int = 2,
        *,
        strengths: Sequence[float] = STRENGTHS,
        upscaler: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a round of finals, enlarged pictures of this one; returns at once.

        If decoding in one piece would take too much memory, the VAE decodes in tiles, and a notice
        and the passport say so.

        Args:
            picture: See `AnyPicture`.
            scale: 2 or 4 times as wide and high.
            strengths: Image-to-image strengths, a picture each; `[0.3]` gives one.
            upscaler: The name or .safetensors file of a network that makes one enlarged picture
                instead; with default `strengths`, the model's own if its card has `enlarges=False`.
            **options: See `RunOptions`.

        Raises:
            SeedGridError: As `start_grid`; `picture_lost` when the picture's pixels are gone.
        """
        library = options.get("library")
        parent = self.find(picture, library)
        card = self.card(ask_again(parent.recipe).model)
        if tuple(strengths) == STRENGTHS and not card.enlarges:
            upscaler = upscaler or card.upscaler
        network = self.model_manager.find_upscaler(upscaler) if upscaler else None
        start = self.take_start(parent, library)
        recipes: tuple[Recipe, ...]
        notices: tuple[Notice, ...] = ()
        if network is not None:
            recipes = (enlarged(parent.recipe, network, start=start, scale=scale),)
        else:
            recipes = finals(parent.recipe, card, start=start, scale=scale, strengths=strengths)
            notices = tiles_notices(recipes[0], card)
            if notices:
                placement = options.get("placement") or self.placement
                options["placement"] = replace(placement, vae_tiling=True)
        jobs = plan_refine([(self._add_if_file(picture, parent, options), recipes)])
        return self._submit(jobs, notices, options)

    def start_again(self, entries: Sequence[Entry], **options: Unpack[RunOptions]) -> Run:
        """Compute a round again as it was; `Run.differing` has the cells whose pixels differ."""
        expected = [entry.pixels_sha256 for entry in entries]
        placement = options.get("placement") or self.placement
        options["placement"] = like_passport(placement, entries[0].passport)
        return self._submit(plan_again(entries), (), {**options, "fresh": True}, expected=expected)

    def start_work(self, work: Sequence[WorkPicture], **options: Unpack[RunOptions]) -> Run | None:
        """Start those pictures of a poster that the library lacks, at their positions in its tree.

        Their pixels are compared with the poster's digests. Pictures whose start or mask is missing
        are skipped, with a notice. Returns None if the library has all of them.
        """
        library = options.get("library") or self.library
        known = {entry.id for entry in library.work(work[0].lineage.work_id)}
        missing = [each for each in work if each.lineage.picture_id not in known]
        for digest in {digest for each in missing for digest in each.recipe.kept_pixels}:
            if (source := library.with_pixels(digest)) is not None and not source.lost:
                self.take_start(source, library)
        cells = [each for each in missing if has_starts(each.recipe, library)]
        if not missing:
            return None
        if not cells:  # Nothing can be painted: this raises an error that names a missing start.
            check_starts([each.recipe for each in missing], library)
        num_skipped = len(missing) - len(cells)
        jobs = [Job(recipe=each.recipe, lineage=each.lineage) for each in cells]
        notices = (Notice("work_partly", number=num_skipped),) if num_skipped else ()
        return self._submit(jobs, notices, options, expected=[c.pixels_sha256 for c in cells])

    # Queries, without painting

    def card(self, model: str | None = None) -> ModelCard:
        """Return a model's card; the studio's own by default.

        Raises:
            ModelError: The model is missing, is damaged, or is not safe to load.
        """
        return self.backend.card(model or self.model)

    def find(self, picture: AnyPicture, library: Library | None = None) -> Entry:
        """Return the entry of a picture: an entry, an id in the library, or a PNG file.

        Raises:
            PictureError: The file is missing, damaged, or holds no recipe.
            InputError: `picture_unknown` or `picture_ambiguous` for an id.
        """
        return find_picture(picture, lambda: library or self.library)

    def take_start(self, picture: AnyPicture, library: Library | None = None) -> str:
        """Store a picture, of SeedGrid or any other program, as a start picture.

        Args:
            picture: See `AnyPicture`; also a PNG, JPEG or WebP file without a recipe.
            library: Where the picture is stored; the studio's own by default.

        Returns:
            The digest that `Request.start` takes.

        Raises:
            PictureError: The file is missing, or is no picture.
            LibraryError: The picture cannot be stored.
        """
        return keep_start(picture, lambda: library or self.library)

    def with_lists(self, texts: Sequence[str], *, field: str = "prompt") -> tuple[str, ...]:
        """Return texts with the artist's word lists filled in, as in `a __coat__ fox`.

        Each line of the list `coat.txt` gives a text of its own. A visitor of a public page has no
        lists.

        Raises:
            InputError: `list_unknown`, `list_public`, `list_file` or `pictures_count`.
        """
        folder = None if is_public() else self.library_folder / LISTS
        lines = partial(list_lines, folder, field)
        return tuple(each for text in texts for each in open_lists(text, lines, field=field))

    def resolve(self, request: Request) -> tuple[Recipe, ...]:
        """Turn a request into recipes.

        A `lock_width` of None becomes the model's, or less if a probe on this machine found a leak.

        Raises:
            InputError: A field of the request is wrong.
            ModelError: As `card`.
        """
        request = with_start(request, lambda: self.library)
        prompts = self.with_lists([request.prompt])
        return resolve_prompts(request, prompts, self.card(request.model))

    def advise(
        self, request: Request, *, suffixes: Sequence[str] = (), language: str = "en"
    ) -> tuple[Advice, ...]:
        """Return the notices about a request; nothing is painted."""
        words = [words_of(each) for each in suffixes]
        return advise(request, self.card(request.model), suffixes=words, language=language)

    def live_seconds(self, request: Request, count: int) -> float | None:
        """Return how many seconds `count` such pictures take live; None before one was painted.

        Raises:
            SeedGridError: As `resolve`.
        """
        recipe = self.resolve(request)[0]
        took_s = self.engine.speeds.known_s([recipe] * count)
        if took_s and self._live_placement(recipe, self.placement).decoder:
            took_s *= 1 - _TINY_SAVES * self.engine.speeds.decoding_share(recipe)
        return took_s

    def _live_placement(self, recipe: Recipe, placement: Placement) -> Placement:
        """Return the placement, with a tiny decoder if that is possible and saves enough time."""
        is_cluster = self.engine.num_painters > 0
        can_use_tiny = not (recipe.start or recipe.mask or recipe.is_portable or is_cluster)
        if not can_use_tiny or self.engine.speeds.decoding_share(recipe) < _MIN_DECODING_SHARE:
            return placement
        return replace(placement, decoder=self.model_manager.tiny_decoder(recipe.model.id))

    def _vocabulary(self, recipe: Recipe) -> Vocabulary | None:
        """Return the vocabulary of a recipe's model; None if the model is missing or has none."""
        try:
            return self.card(ask_again(recipe).model).vocabulary
        except ModelError:
            return None

    def _painted_ancestor(
        self, entry: Entry, library: Library | None
    ) -> tuple[Entry, tuple[Notice, ...]]:
        """Return the picture or, with a notice, that which was enlarged; raise `upscaler_words`."""
        notices: tuple[Notice, ...] = ()
        seen = {entry.id}  # A forged file can name itself as its parent.
        while entry.recipe.upscaler is not None:
            network, parent_id = entry.recipe.upscaler.id, entry.lineage.parent_id or ""
            try:
                entry = (library or self.library).get("" if parent_id in seen else parent_id)
            except InputError as error:
                raise InputError("upscaler_words", field="vary", value=network) from error
            seen.add(parent_id)
            notices = (Notice("upscaler_parent", value=network),)
        return entry, notices

    def _add_if_file(self, picture: AnyPicture, parent: Entry, options: RunOptions) -> Entry:
        """Return the parent's entry in the library; if the picture is a file, add it first."""
        if not isinstance(picture, str | Path) or is_id(picture):
            return parent
        from seedgrid.library.take_in import add_picture

        library = options.get("library") or self.library
        return add_picture(library, png.read_bytes(parent.path))[0]

    def _submit_refinement(
        self,
        rows: Sequence[tuple[Entry, Sequence[Recipe]]],
        options: RunOptions,
        notices: Sequence[Notice] = (),
    ) -> Run:
        """Start a round that refines pictures, at batch widths at which no probe found a leak."""
        check_count(sum(len(recipes) for _, recipes in rows), field="vary")
        narrowed = [(parent, list(map(at_advised_width, recipes))) for parent, recipes in rows]
        widths = [width_notices(each, parent.recipe.lock_width) for parent, each in narrowed]
        notices = [*notices, *(notice for several in widths for notice in several)]
        if any(parent.passport.vae_tiling for parent, _ in rows):
            placement = options.get("placement") or self.placement
            options["placement"] = replace(placement, vae_tiling=True)
        unique = [each for at, each in enumerate(notices) if each not in notices[:at]]
        return self._submit(plan_refine(narrowed), unique, options)

    def _submit(
        self,
        jobs: Sequence[Job],
        notices: Sequence[Notice],
        options: RunOptions,
        *,
        expected: Sequence[str] = (),
    ) -> Run:
        check_offered([job.recipe for job in jobs], self.card)
        if "library" in options:  # A digest must not give access to another visitor's start.
            check_starts([job.recipe for job in jobs], options["library"])
        placement = options.get("placement")
        if options.get("live"):
            placement = self._live_placement(jobs[0].recipe, placement or self.placement)
        run = self.engine.submit(
            jobs,
            owner=options.get("owner", _OWNER),
            address=options.get("address", ""),
            fresh=options.get("fresh", False),
            live=options.get("live", False),
            library=options.get("library") or self.library,
            placement=placement,
            expected=expected,
            notices=notices,
        )
        self.verifier.stop_probing()
        return run


def _wait(run: Run) -> Pictures:
    """Wait for a run; Ctrl+C stops it and keeps what is finished."""
    try:
        pictures = Pictures(run.result())
    except BaseException:  # Ctrl+C too; it is raised again.
        run.cancel()
        raise
    for notice in run.notices:
        logger.warning("%s", notice)
    pictures.notices = run.notices
    return pictures
