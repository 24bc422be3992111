"""The Backend protocol: what the engine needs of a painter, nothing more. Needs no torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, cast, get_args, runtime_checkable

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.probe_results import ProbeReport

Offload = Literal["none", "model", "group", "sequential"]

# `Placement.attention`: torch's choice, diffusers' slices, or one kernel of torch
ATTENTION_NAMES: Final = ("default", "sliced", "math", "flash", "efficient", "cudnn")
DEVICE_KINDS: Final = ("cuda", "xpu", "mps", "cpu")  # In order of preference
MAX_THREADS: Final = 256

Outcome = Pixels | RunError  # A picture, RGB, shape (height, width, 3), uint8; or why there is none
PreviewMaker = Callable[[], tuple[Pixels, ...]]  # Returns one small RGB picture a recipe, in order
LoadWatch = Callable[[], None]  # Called before each part is loaded; its errors stop the loading


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where and how to compute: it may change bits, so it is in the passport, not in the recipe."""

    device: str = "auto"  # `"auto"` (first of `DEVICE_KINDS`), `"cpu"`, `"cuda:1"`, …
    offload: Offload = "none"
    vae_slicing: bool = False
    vae_tiling: bool = False
    channels_last: bool = False
    attention: str = "default"
    # Threads of one operation; None is torch's own choice. The engine rounds down to a power of
    # two, which the lock needs; only verifying uses the number of a picture's passport.
    threads: int | None = None
    previews: bool = True  # Whether `Watch.step` is given small pictures
    # Torch's switches as a passport names them, for verifying; set before the determinism level
    switches: tuple[tuple[str, str], ...] = ()
    decoder: str = ""  # Hub id, for live pictures; empty for the model's own


def even_threads(available: int) -> int:
    """Return the greatest power of two up to a number of threads.

    Element-wise work is cut into one part a thread, and the end of a part that does not fill a
    vector is rounded differently. Three or six threads cut four pictures in different places, so
    the bits would depend on the slot; two or eight cut all alike (docs/log.md).
    """
    return 1 << (available.bit_length() - 1)


class Watch(Protocol):
    """How the engine follows a batch and stops it."""

    @property
    def cancelled(self) -> bool:
        """Whether the batch should stop; read at every step."""

    def noise(self, previews: PreviewMaker) -> None:
        """Report that the batch begins; `previews` shows the noise."""

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Report that step `number`, from 1, of `total` is done; calling `previews` costs time."""

    def tile(self, number: int, total: int) -> None:
        """Report that tile `number` of `total` is decoded now, of pictures decoded in tiles."""

    def freed(self) -> None:
        """Report that memory was full: other models were freed, and the batch begins anew."""


class Unwatched:
    """A watch that reports nothing; setting `cancelled` stops the batch."""

    cancelled = False

    def noise(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    step = tile = freed = noise


class Backend(Protocol):
    """Something that paints recipes. All but `card` is called from one thread only."""

    def card(self, model: str | None) -> ModelCard:
        """Say what a model can do, without loading it; raise ModelError for a bad one."""

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Load what the recipe needs, check its settings, and return the passport it would have.

        The recipe stands for all of its `batch_key`; `watch` is called while a model is loaded.

        Raises:
            RunCancelled: What `watch` raises comes out.
            InputError: The model has no such settings.
            RunError: `portable_wrong_here`: portable arithmetic gives other bits on this machine.
            ModelError: The weights are not those that the recipe names.
            DeviceError: The device is not there.
        """

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether `prepare` would be quick: the model is loaded already."""

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to W recipes of one `batch_key` in W cells, padded with repeats.

        Settings are checked by `prepare` only. Returns a picture for each recipe, or its error
        (`picture_nan`, `picture_withheld`), which does not affect its neighbours. Raises
        RunCancelled when `watch.cancelled`; RunError for the whole batch: out of memory, refused
        settings.
        """

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport | None:
        """Test whether the lock holds for recipes like this one; None where that is impossible.

        Raises RunCancelled; RunError where a batch fails; else as `prepare`.
        """

    def close(self) -> None:
        """Free models and memory."""


@runtime_checkable
class ManyPainters(Protocol):
    """Backends that paint at the same time; a lost one raises `worker_lost` and gets closed."""

    def card(self, model: str | None) -> ModelCard:
        """As `Backend.card`."""

    def begin(
        self, on_join: Callable[[str, Backend], None], on_leave: Callable[[str], None]
    ) -> None:
        """Call back when painters join, each by a name of its own, and when they leave."""

    def close(self) -> None:
        """Close all painters."""


def placement_of(passport: Passport, *, device: str | None = None) -> Placement:
    """Return a passport's placement; what is missing or wrong in the passport is the default."""
    offload = passport.offload if passport.offload in get_args(Offload) else "none"
    attention = passport.attention.partition(" ")[0]
    return Placement(
        device=device or passport.device.partition(":")[0] or "auto",
        offload=cast("Offload", offload),
        vae_slicing=passport.vae_slicing,
        vae_tiling=passport.vae_tiling,
        channels_last=passport.memory_format == "channels_last",
        attention=attention if attention in ATTENTION_NAMES else "default",
        threads=passport.threads if 0 < passport.threads <= MAX_THREADS else None,
        previews=False,
        switches=tuple(sorted((passport.precision | passport.determinism).items())),
    )
