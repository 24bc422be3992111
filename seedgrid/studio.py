"""Studio: the whole workflow for Python, the command line and the page, in a few words.

    with Studio() as studio:
        grid = studio.grid("Labrador in the style of Vermeer", seeds="0-3")
        finals = studio.refine(grid[2])
        finals[3].save("labrador.png")

It puts model, engine and library together and knows nothing of screens. Nothing is loaded and no
folder is made before the first picture is asked for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypedDict, Unpack

from seedgrid.core import request as requests
from seedgrid.core.entry import Entry
from seedgrid.core.plan import plan_grid, plan_refine
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import ModelCard, Request
from seedgrid.core.seeds import check_seed, parse_seeds
from seedgrid.core.turbo import quicken
from seedgrid.diffusion.backend import Backend, Placement
from seedgrid.engine import Engine, Run
from seedgrid.formats import png
from seedgrid.pictures import Pictures, StudioPicture, read_entry

if TYPE_CHECKING:
    from seedgrid.library import Library

Seeds = str | int | Sequence[int]
"""`"0-3"`, `7`, or `[7, 11, 42]`."""

AnyPicture = StudioPicture | Entry | str | Path
"""One of the studio's, a PNG file, or an id in the library or the beginning of one."""

_OWNER: Final = "studio"
_RUNS: Final = 1000
_ID_DIGITS: Final = frozenset("0123456789abcdef")


class Settings(TypedDict, total=False):
    """What may be said of a picture beside words and seeds; absent means as the model's card says.

    The names are those of `Request` and mean the same.
    """

    negative_prompt: str
    width: int | None
    height: int | None
    num_inference_steps: int | None
    guidance_scale: float | None
    scheduler: str | None
    dtype: str | None
    lock_width: int | None
    determinism: str | None


class Studio:
    """A model, an engine and a library, ready to paint. Safe to use from any thread.

    Args:
        model: `"bundled"`, a folder, a hub id, or a .safetensors file; by default what the
            environment's `SEEDGRID_MODEL` says, else `"bundled"`.
        library: The folder that keeps the pictures; by default what `SEEDGRID_LIBRARY` says, else
            the system's place for the user's data.
        device: `"auto"`, `"cpu"`, `"cuda"`, …
        backend: What paints; by default diffusers.
        placement: Where to compute, in full; `device` alone by default, without previews.
        runs_per_owner: How many runs each visitor of the page may have waiting or running.
    """

    def __init__(
        self,
        model: str | None = None,
        library: str | Path | None = None,
        device: str = "auto",
        *,
        backend: Backend | None = None,
        placement: Placement | None = None,
        runs_per_owner: int = _RUNS,
    ) -> None:
        self.model = model or default_model()
        self.library_folder = Path(library or default_library()).expanduser().absolute()
        self._placement = placement or Placement(device=device, previews=False)
        self._making = threading.RLock()
        self._backend = backend
        self._library: Library | None = None
        self._engine: Engine | None = None
        self._runs_per_owner = runs_per_owner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def backend(self) -> Backend:
        """What paints."""
        with self._making:
            if self._backend is None:
                from seedgrid.diffusion.deferred import DeferredBackend

                self._backend = DeferredBackend()
            return self._backend

    @property
    def library(self) -> Library:
        """Where the pictures are kept; the folder is made when it is first asked for."""
        with self._making:
            if self._library is None:
                from seedgrid.library import Library

                self._library = Library(self.library_folder)
            return self._library

    @property
    def engine(self) -> Engine:
        """Who makes them; starts its threads when it is first asked for."""
        with self._making:
            if self._engine is None:
                self._engine = Engine(
                    self.backend,
                    self.library,
                    placement=self._placement,
                    runs_per_owner=self._runs_per_owner,
                )
            return self._engine

    def card(self, model: str | None = None) -> ModelCard:
        """Say what a model can do; the studio's own by default.

        Raises:
            ModelError: The model is not there, is damaged, or is not safe to load.
        """
        return self.backend.card(model or self.model)

    def grid(
        self,
        prompt: str,
        seeds: Seeds = "0-3",
        *,
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Pictures:
        """Paint one prompt on several seeds and wait for the pictures.

        Args:
            prompt: The words.
            seeds: One picture for each.
            fresh: Compute even what the library remembers.
            turbo: Answer what is left open for speed; the recipe says how.
            **settings: See `Settings`.

        Raises:
            InputError: What was asked for cannot be; nothing was started.
            RunError: It was started and did not succeed; finished pictures are in the library.
            LibraryError: The pictures cannot be kept.
        """
        return _wait(self.start_grid(prompt, seeds, fresh=fresh, turbo=turbo, **settings))

    def refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        prompt: str | None = None,
        fresh: bool = False,
    ) -> Pictures:
        """Vary the words of a picture on its own seed and wait for the variations.

        Args:
            picture: See `AnyPicture`.
            suffixes: Appended to the prompt, one picture each; the guide's four by default.
            prompt: Another prompt to append them to; the picture's own by default.
            fresh: Compute even what the library remembers.

        Raises:
            InputError: What was asked for cannot be; nothing was started.
            RunError: It was started and did not succeed; finished pictures are in the library.
            LibraryError: The pictures cannot be kept.
        """
        return _wait(self.start_refine(picture, suffixes, prompt=prompt, fresh=fresh))

    def matrix(
        self,
        prompts: Sequence[str],
        seeds: Seeds,
        *,
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Pictures:
        """Paint every prompt on every seed: one row a prompt, one column a seed, row by row.

        Raises:
            InputError: What was asked for cannot be; nothing was started.
            RunError: It was started and did not succeed; finished pictures are in the library.
            LibraryError: The pictures cannot be kept.
        """
        return _wait(self.start_matrix(prompts, seeds, fresh=fresh, turbo=turbo, **settings))

    def start_grid(
        self,
        prompt: str,
        seeds: Seeds = "0-3",
        *,
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Run:
        """Start what `grid` waits for."""
        return self.start_matrix([prompt], seeds, fresh=fresh, turbo=turbo, **settings)

    def start_refine(
        self,
        picture: AnyPicture,
        suffixes: Sequence[str] = GUIDE_SUFFIXES,
        *,
        prompt: str | None = None,
        fresh: bool = False,
    ) -> Run:
        """Start what `refine` waits for."""
        parent = self.find(picture)
        recipes = requests.refine(parent.recipe, suffixes, prompt=prompt)
        if isinstance(picture, str | Path) and not _is_id(picture):
            # A file from elsewhere joins the library, so that the tree of choices is whole.
            parent = self.library.add_png(png.read_bytes(parent.path))
        return self.engine.submit(plan_refine(parent, recipes), owner=_OWNER, fresh=fresh)

    def start_matrix(
        self,
        prompts: Sequence[str],
        seeds: Seeds,
        *,
        fresh: bool = False,
        turbo: bool = False,
        **settings: Unpack[Settings],
    ) -> Run:
        """Start what `matrix` waits for."""
        request = Request(prompt="", seeds=_read_seeds(seeds), **settings)
        recipes = self.resolve(request, prompts, turbo=turbo)
        return self.engine.submit(plan_grid(recipes), owner=_OWNER, fresh=fresh)

    def resolve(
        self,
        request: Request,
        prompts: Sequence[str] | None = None,
        *,
        turbo: bool = False,
        device: str | None = None,
    ) -> tuple[Recipe, ...]:
        """Turn a request into recipes; with turbo what it leaves open is answered for speed.

        Args:
            request: What was asked for.
            prompts: In place of its own, each on every seed.
            turbo: See `core.turbo`.
            device: Where they will be painted; the studio's own by default.

        Raises:
            InputError: What was asked for cannot be, by field.
            ModelError: As `card`.
        """
        card = self.card(request.model)
        where = device or self._placement.device
        quick = quicken(request, card, device=where) if turbo else request
        words = [request.prompt] if prompts is None else prompts
        wanted = [replace(quick, prompt=prompt) for prompt in words]
        return tuple(recipe for one in wanted for recipe in requests.resolve(one, card))

    def find(self, picture: AnyPicture) -> Entry:
        """Return what is known of a picture: one of ours, an id in the library, or a PNG file.

        Raises:
            PictureError: The file is missing, damaged, or holds no recipe.
            InputError: `picture_unknown` or `picture_ambiguous` for an id.
        """
        if isinstance(picture, StudioPicture):
            return picture.entry
        if isinstance(picture, Entry):
            return picture
        if _is_id(picture):
            return self.library.find(str(picture))
        return read_entry(Path(picture))

    def close(self) -> None:
        """Stop what is running, save what is finished, let go of the model."""
        if self._engine is not None:
            self._engine.close()
        if self._library is not None:
            self._library.close()


def default_model() -> str:
    """Return the model that the environment names, else the bundled one."""
    return os.environ.get("SEEDGRID_MODEL") or "bundled"


def default_library() -> Path:
    """Return the folder that the environment names, else the system's place for user data."""
    folder = os.environ.get("SEEDGRID_LIBRARY")
    if folder:
        return Path(folder)
    import platformdirs

    return Path(platformdirs.user_data_dir("seedgrid", appauthor=False))


def _is_id(picture: str | Path) -> bool:
    """Tell whether this may be an id, or the beginning of one, and not the name of a file."""
    return set(str(picture)) <= _ID_DIGITS and not Path(picture).exists()


def _read_seeds(seeds: Seeds) -> tuple[int, ...]:
    if isinstance(seeds, str):
        return parse_seeds(seeds)
    if isinstance(seeds, Sequence):
        return tuple(check_seed(seed) for seed in seeds)
    return (check_seed(seeds),)


def _wait(run: Run) -> Pictures:
    """Wait for a run; Ctrl+C stops it and keeps what is finished."""
    try:
        return Pictures([StudioPicture(entry) for entry in run.result()])
    except BaseException:
        run.cancel()
        raise
