"""The Backend protocol, which the engine calls to paint. This module does not import torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, cast, get_args, runtime_checkable

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.probe_results import ProbeReport

Offload = Literal["none", "model", "group", "sequential"]

# Values of `Placement.attention`: torch's choice, diffusers' attention slicing, or one kernel
ATTENTION_NAMES: Final = ("default", "sliced", "math", "flash", "efficient", "cudnn")
DEVICE_KINDS: Final = ("cuda", "xpu", "mps", "cpu")  # In order of preference
MAX_THREADS: Final = 256

Outcome = Pixels | RunError  # A picture, RGB, shape (height, width, 3), uint8; or why there is none
PreviewMaker = Callable[[], tuple[Pixels, ...]]  # Returns a small RGB picture for each recipe
# Called before each part of a pipeline is loaded; an error that it raises stops the loading
LoadWatch = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where and how to compute. It may change bits, so passports record it; recipes do not."""

    device: str = "auto"  # `"auto"` (first of `DEVICE_KINDS`), `"cpu"`, `"cuda:1"`, …
    offload: Offload = "none"
    vae_slicing: bool = False
    vae_tiling: bool = False
    channels_last: bool = False
    attention: str = "default"
    # Threads of one operation; None is torch's own choice. Both are rounded down to a power of two
    # (`even_threads`); only a verification uses the number in the picture's passport as it is.
    threads: int | None = None
    previews: bool = True  # Whether small pictures are shown: they are then prepared at loading
    # For verifying: torch's global switches, by name and value as in a passport; those that belong
    # to the recipe's determinism level are set afterwards
    switches: tuple[tuple[str, str], ...] = ()
    decoder: str = ""  # Hub id of a tiny decoder, for live pictures; empty for the model's own VAE


def even_threads(available: int) -> int:
    """Return the greatest power of two up to a number of threads.

    torch gives each thread one part of an element-wise operation, and rounds the end of a part that
    does not fill a vector register differently. Three or six threads divide each of four pictures
    at other points, so bits would depend on a picture's slot; two or eight do not (docs/log.md).
    """
    return 1 << (available.bit_length() - 1)


class Watch(Protocol):
    """How the engine follows a batch and stops it."""

    @property
    def cancelled(self) -> bool:
        """Whether the batch should stop; read at every step."""

    def noise(self, previews: PreviewMaker) -> None:
        """Report that the batch begins; `previews` returns pictures of the initial noise."""

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Report that step `number` (from 1) of `total` is done; calling `previews` takes time."""

    def tile(self, number: int, total: int) -> None:
        """Report that the VAE begins to decode tile `number` of `total`, with tiling."""

    def freed(self) -> None:
        """Report that memory was full: all models were freed, and the batch starts again."""


class Unwatched:
    """A watch that reports nothing; setting `cancelled` stops the batch."""

    cancelled = False

    def noise(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    step = tile = freed = noise


class Backend(Protocol):
    """Something that paints recipes. All methods but `card` are called from one thread only."""

    def card(self, model: str | None) -> ModelCard:
        """Say what a model can do, without loading it; raise ModelError for a bad one."""

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Load what the recipe needs, check its settings, and return its picture's passport.

        The answer is valid for all recipes of the same `batch_key`. `watch` is called while a model
        is loaded.

        Raises:
            RunCancelled: Raised by `watch`.
            InputError: The model does not support the recipe's settings.
            RunError: For example `portable_wrong_here`: portable arithmetic gives other bits here.
            ModelError: The model is missing or damaged, or has other weights than the recipe names.
            DeviceError: This machine does not have the placement's device.
        """

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether `prepare` would be quick: the model is loaded already."""

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to `lock_width` recipes of one `batch_key` in a batch of exactly that width.

        Fewer recipes are padded with repeats, unless portable. Settings are checked by `prepare`
        only. Returns for each recipe its picture or its error (`picture_nan`, `picture_withheld`),
        which does not affect the others. Raises RunCancelled when `watch.cancelled`; RunError if
        the whole batch fails, for lack of memory or because the pipeline refuses its settings.
        """

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport | None:
        """Test whether the lock holds for recipes like this one; None if this cannot be tested.

        Raises RunCancelled, RunError if a batch fails, and what `prepare` raises.
        """

    def close(self) -> None:
        """Free models and memory."""


@runtime_checkable
class ManyPainters(Protocol):
    """Several backends that paint at the same time; calls to a lost one raise `worker_lost`."""

    def card(self, model: str | None) -> ModelCard:
        """Do the same as `Backend.card`."""

    def begin(
        self, on_join: Callable[[str, Backend], None], on_leave: Callable[[str], None]
    ) -> None:
        """Call `on_join(unique name, backend)` for new backends, `on_leave(name)` for lost ones."""

    def close(self) -> None:
        """Close all backends."""


def placement_of(passport: Passport, *, device: str | None = None) -> Placement:
    """Return a passport's placement; values that are missing or invalid become the defaults."""
    device = device or passport.device.partition(":")[0] or "auto"
    can_offload = device != "cpu" and passport.offload in get_args(Offload)
    offload = passport.offload if can_offload else "none"
    attention = passport.attention.partition(" ")[0]
    return Placement(
        device=device,
        offload=cast("Offload", offload),
        vae_slicing=passport.vae_slicing,
        vae_tiling=passport.vae_tiling,
        channels_last=passport.memory_format == "channels_last",
        attention=attention if attention in ATTENTION_NAMES else "default",
        threads=passport.threads if 0 < passport.threads <= MAX_THREADS else None,
        previews=False,
        switches=tuple(sorted((passport.precision | passport.determinism).items())),
    )


def like_passport(placement: Placement, passport: Passport) -> Placement:
    """Return a placement that decodes and attends as a passport says, on its own device."""
    then = placement_of(passport)
    return replace(
        placement,
        attention=then.attention,
        vae_slicing=then.vae_slicing,
        vae_tiling=then.vae_tiling,
    )
