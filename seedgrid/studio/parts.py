"""The parts of a studio: model, backend, library and engine, each made when it is first needed."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from seedgrid.core.card import ModelCard
from seedgrid.core.entry import Entry
from seedgrid.core.errors import SeedGridError
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import ask_again
from seedgrid.core.variables import is_public
from seedgrid.diffusion.backend import Backend, Placement, Unwatched
from seedgrid.diffusion.portable_trial import PortableTrial
from seedgrid.engine import UNBOUNDED, Bounds, Engine, Load, PainterState, Run, Warmth
from seedgrid.models import loras, upscalers
from seedgrid.pictures import StudioPicture, read_entry
from seedgrid.storage import starts
from seedgrid.studio.options import AnyPicture, is_id

if TYPE_CHECKING:
    from seedgrid.library import Library
    from seedgrid.studio.model_manager import ModelManager

STARTS: Final = "starts"
"""The folder of a library that holds what its pictures were begun from."""
_RUNS: Final = 1000


class Parts:
    """A model, an engine and a library, put together. Safe to use from any thread.

    Args:
        model: `"bundled"`, a folder, a hub id, or a .safetensors file; by default what the
            environment's `SEEDGRID_MODEL` says, else `"bundled"`.
        library: The folder that keeps the pictures; by default what `SEEDGRID_LIBRARY` says, else
            the system's place for the user's data.
        device: `"auto"`, `"cpu"`, `"cuda"`, …
        backend: What paints; by default diffusers.
        placement: Where to compute, in full; `device` alone by default, without previews.
        runs_per_owner: How many runs each visitor of the page may have waiting or running.
        bounds: What strangers may ask for beside.
        on_lost: Called when the engine is lost for good: the process should end.

    Attributes:
        placement: Where pictures are computed unless a run says otherwise.
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
        bounds: Bounds = UNBOUNDED,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.model = model or default_model()
        self.library_folder = Path(library or default_library()).expanduser().absolute()
        starts.know(self.library_folder / STARTS)
        self.placement = placement or Placement(device=device, previews=False)
        self._making = threading.RLock()
        self._probe_watch = Unwatched()
        self._trials: dict[str, Future[PortableTrial]] = {}  # by model
        self._backend = backend
        self._library: Library | None = None
        self._engine: Engine | None = None
        self._manager: ModelManager | None = None
        self._runs_per_owner = runs_per_owner
        self._bounds = bounds
        self._on_lost = on_lost

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
    def model_manager(self) -> ModelManager:
        """The models on this machine, and how others come to it."""
        with self._making:
            if self._manager is None:
                from seedgrid.studio.model_manager import ModelManager

                self._manager = ModelManager()
            return self._manager

    def move_library(self, folder: Path) -> None:
        """Keep pictures in this folder from now on; the same one is made again if it is gone.

        Raises:
            LibraryError: The folder refuses; nothing changes.
        """
        from seedgrid.library import Library

        opened = Library(folder)
        with self._making:
            before, self._library = self._library, opened
            self.library_folder = opened.folder
        if before is not None:
            with contextlib.suppress(SeedGridError, OSError):  # Its folder may be gone.
                before.close()

    @property
    def engine(self) -> Engine:
        """Who makes them; starts its threads when it is first asked for."""
        with self._making:
            if self._engine is None:
                self._engine = Engine(
                    self.backend,
                    placement=self.placement,
                    runs_per_owner=self._runs_per_owner,
                    bounds=self._bounds,
                    on_lost=self._on_lost,
                )
            return self._engine

    def card(self, model: str | None = None) -> ModelCard:
        """Say what a model can do; the studio's own by default.

        Raises:
            ModelError: The model is not there, is damaged, or is not safe to load.
        """
        return self.backend.card(model or self.model)

    def check_offered(self, recipes: Collection[Recipe]) -> None:
        """Refuse what the owner of a public page does not offer, whatever brought the recipes.

        Raises:
            ModelError: `model_not_offered`.
            InputError: `lora_not_offered`, `upscaler_not_offered`.
        """
        if not is_public():
            return
        for model in {ask_again(recipe).model for recipe in recipes}:
            self.card(model)
        for upscaler in {recipe.upscaler for recipe in recipes if recipe.upscaler}:
            upscalers.check_offered(upscaler.id)
        for name in {lora.id for recipe in recipes for lora in recipe.loras}:
            loras.check_offered(name)

    @property
    def warmth(self) -> Warmth:
        """How far `warm` has come."""
        return self.engine.warmth

    @property
    def load(self) -> Load:
        """What the engine has to do at this moment."""
        return self.engine.load

    @property
    def painters(self) -> tuple[PainterState, ...]:
        """Who paints, where a cluster does; empty where one process does."""
        return self.engine.painters

    def warm(self) -> None:
        """Load the studio's model in the background, when no run waits."""
        self.engine.warm(self.model)

    def run(self, run_id: str) -> Run | None:
        """Return a run that goes on or that ended not long ago."""
        return self.engine.run(run_id)

    def find(self, picture: AnyPicture, library: Library | None = None) -> Entry:
        """Return what is known of a picture: one of ours, an id in the library, or a PNG file.

        Raises:
            PictureError: The file is missing, damaged, or holds no recipe.
            InputError: `picture_unknown` or `picture_ambiguous` for an id.
        """
        if isinstance(picture, StudioPicture):
            return picture.entry
        if isinstance(picture, Entry):
            return picture
        if is_id(picture):
            return (library or self.library).find(str(picture))
        return read_entry(Path(picture))

    def begin_to_close(self) -> None:
        """Stop what is running, and take nothing more; `close` waits for the end."""
        if self._engine is not None:
            self._engine.begin_to_close()

    def close(self) -> None:
        """Stop what is running, save what is finished, let go of the model."""
        if self._manager is not None:
            self._manager.close()
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
