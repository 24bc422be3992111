"""The Backend protocol: what the engine needs of whatever paints, nothing more.

Importing this needs no torch. `fake.FakeBackend` and `diffusion.DiffusersBackend` fulfil it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, cast, get_args, runtime_checkable

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.portable import PortableTrial

Offload = Literal["none", "model", "group", "sequential"]

ATTENTION_NAMES: Final = ("default", "sliced", "math", "flash", "efficient", "cudnn")
"""What `Placement.attention` may be: torch's choice, diffusers' slices, or one kernel of torch."""

Outcome = Pixels | RunError
"""A picture, RGB, shape (height, width, 3), uint8; or why the model gave none."""
DEVICE_KINDS: Final = ("cuda", "xpu", "mps", "cpu")
"""Where a model can compute, the first there is before the next."""

PreviewMaker = Callable[[], tuple[Pixels, ...]]
"""Gives one small RGB picture a recipe, in order."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where and how to compute: it may change bits, so it is in the passport, not in the recipe.

    Attributes:
        device: `"auto"` (cuda, xpu, mps, cpu, the first there is), or `"cpu"`, `"cuda:1"`, …
        threads: Threads of one operation; None is torch's own choice. The engine rounds down to a
            power of two, which the lock needs; only verifying takes a picture's own number.
        previews: Whether to hand small pictures to `Watch.step`.
        switches: Torch's switches to set beforehand, as a passport names them, for verifying;
            the recipe's determinism level comes after them.
        decoder: The hub id of a tiny decoder in place of the model's own, for pictures that are
            shown and never kept; empty for the model's own.
    """

    device: str = "auto"
    offload: Offload = "none"
    vae_slicing: bool = False
    vae_tiling: bool = False
    channels_last: bool = False
    attention: str = "default"
    threads: int | None = None
    previews: bool = True
    switches: tuple[tuple[str, str], ...] = ()
    decoder: str = ""


def even_threads(available: int) -> int:
    """Return the greatest power of two that is not more than what is available.

    Element-wise work is cut into one part a thread, and the end of a part that does not fill the
    processor's vectors is rounded otherwise. Three or six threads cut four pictures in different
    places, so the slot would show in the bits; two or eight cut all of them alike (docs/log.md).
    """
    return 1 << (available.bit_length() - 1)


LoadWatch = Callable[[int, int], None]
"""Is told how many bytes of how many a model has in memory; what it raises stops the loading."""


class Watch(Protocol):
    """How the engine follows a batch and stops it."""

    @property
    def cancelled(self) -> bool:
        """True as soon as the batch should stop; asked at every step."""

    def noise(self, previews: PreviewMaker) -> None:
        """Tell that the batch begins, with nothing but noise."""

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Tell that step `number` of `total` is done.

        Args:
            number: From 1.
            total: The steps of the batch.
            previews: Gives one small RGB picture a recipe, in order; costs time when called.
        """

    def tile(self, number: int, total: int) -> None:
        """Tell that tile `number` of `total` is decoded now, of pictures decoded in tiles."""

    def freed(self) -> None:
        """Tell that memory was full: all else was given back, and the batch begins anew."""


class Unwatched:
    """A watch that nobody follows: it stops nothing until `cancelled` is set."""

    cancelled = False

    def noise(self, previews: PreviewMaker) -> None:
        """Do nothing."""

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Do nothing."""

    def tile(self, number: int, total: int) -> None:
        """Do nothing."""

    def freed(self) -> None:
        """Do nothing."""


class Backend(Protocol):
    """Something that paints recipes. All but `card` is called from one thread only."""

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it (and without torch).

        Raises:
            ModelError: The model is not there, is damaged, or is not safe to load.
        """

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Load what the recipe needs, refuse what it cannot be, and say under which passport.

        Args:
            recipe: One that will be painted; it speaks for all of its `batch_key`.
            placement: Where and how.
            watch: Told of a large model while it is loaded, where it is loaded in this process.

        Raises:
            RunCancelled: What `watch` raises comes out.
            InputError: The model cannot do what the recipe asks for.
            RunError: `portable_wrong_here`: portable arithmetic is not what it should be here.
            ModelError: The weights are not those that the recipe names.
            DeviceError: The device is not there.
        """

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether `prepare` would be quick: the model is loaded already."""

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to W recipes of one `batch_key` in a batch of exactly W cells.

        Args:
            recipes: 1 … `lock_width` of them; the rest of the batch is padded with repeats. Only
                `prepare` looks whether they can be painted at all.
            placement: Where and how.
            watch: Told of each step, and asked whether to stop.

        Returns:
            One picture a recipe; for one that came to nothing (`picture_nan`,
            `picture_withheld`) its error, which costs its neighbours nothing.

        Raises:
            RunCancelled: `watch.cancelled` became true.
            RunError: No picture at all can come out: out of memory, settings that the model
                refuses; with advice.
        """

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport | None:
        """Test whether the lock holds for recipes like this one; None where nothing can tell.

        Raises:
            RunCancelled: `watch.cancelled` became true.
            RunError: A batch could not be computed.
            ModelError: As `prepare`.
            DeviceError: As `prepare`.
        """

    def try_portable(self, recipe: Recipe, placement: Placement) -> PortableTrial:
        """Return what a trial found of portable arithmetic where a recipe would be painted.

        It takes some seconds and is remembered by passport.
        """

    def close(self) -> None:
        """Let go of models and memory."""


@runtime_checkable
class ManyPainters(Protocol):
    """A backend that knows several, which paint at the same time: a cluster's workers.

    A painter raises `RunError("worker_lost")` when it is gone; who was given it closes it.
    """

    def card(self, model: str | None) -> ModelCard:
        """As `Backend.card`."""

    def begin(
        self, on_join: Callable[[str, Backend], None], on_leave: Callable[[str], None]
    ) -> None:
        """Tell from now on who joins, by a name that is never used again, and who leaves."""

    def close(self) -> None:
        """Let go of everything."""


MAX_THREADS: Final = 256


def placement_of(passport: Passport, *, device: str | None = None) -> Placement:
    """Return the placement under which a passport was made.

    What the passport does not know, or knows wrongly, is as usual.
    """
    threads = passport.threads if 0 < passport.threads <= MAX_THREADS else None
    offload = passport.offload if passport.offload in get_args(Offload) else "none"
    attention = passport.attention.partition(" ")[0]
    switches = passport.precision | passport.determinism
    return Placement(
        device=device or passport.device.partition(":")[0] or "auto",
        offload=cast("Offload", offload),
        vae_slicing=passport.vae_slicing,
        vae_tiling=passport.vae_tiling,
        channels_last=passport.memory_format == "channels_last",
        attention=attention if attention in ATTENTION_NAMES else "default",
        threads=threads,
        previews=False,
        switches=tuple(sorted(switches.items())),
    )
