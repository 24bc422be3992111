"""What a run tells those who watch it. Plain and frozen; no tensors, no callables.

A run's events are: any number of `Queued`, then `Loading`, once or more, if the model must be
loaded, then `Started`, `Noise`, `Step`, `Finished`, `Missed` (one picture) and `Eased` in any
number, and at the end exactly one of `Done`, `Cancelled`, `Failed`.
"""

from dataclasses import dataclass, field

from seedgrid.core.errors import Notice, SeedGridError
from seedgrid.core.picture import Entry, Pixels


@dataclass(frozen=True, kw_only=True)
class Queued:
    """The run waits; `position` runs are before it (0: it is next)."""

    position: int


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The model is being loaded; the first run after the start waits for it."""

    model: str


@dataclass(frozen=True, kw_only=True)
class Started:
    """The model works on these cells now."""

    cells: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise from which these cells begin; told at once, where previews are wanted.

    Attributes:
        previews: One small RGB picture a cell: the noise itself, in the colours of the model, half
            as strong.
    """

    cells: tuple[int, ...]
    previews: tuple[Pixels, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the denoiser is done for these cells.

    Attributes:
        number: From 1 to `total`.
        previews: One small RGB picture a cell, or empty when nobody asked.
        tile: After the last step, where pictures are decoded in tiles: which one it is now, from 1.
        num_tiles: How many there are; 0 before, and where pictures are decoded whole.
        left_s: About how long the rest of the run takes; None before two steps are done.
    """

    cells: tuple[int, ...]
    number: int
    total: int
    left_s: float | None = None
    previews: tuple[Pixels, ...] = field(default=(), repr=False)
    tile: int = 0
    num_tiles: int = 0


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One picture is done and safe in the library.

    Attributes:
        remembered: It was not computed: the library had it under the same recipe and passport.
    """

    cell: int
    entry: Entry
    remembered: bool = False


@dataclass(frozen=True, kw_only=True)
class Missed:
    """One picture came to nothing; its neighbours did not, and the run goes on.

    Attributes:
        error: Why; the run ends as failed with the first of them.
    """

    cell: int
    error: SeedGridError


@dataclass(frozen=True, kw_only=True)
class Eased:
    """Memory was full: the run goes on in a way that needs less, which the notice says."""

    notice: Notice


@dataclass(frozen=True, kw_only=True)
class Done:
    """Every picture of the run is finished."""

    elapsed_s: float


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The run was stopped on request; pictures that were finished are kept."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The run could not go on; pictures that were finished are kept."""

    error: SeedGridError


Terminal = Done | Cancelled | Failed
Event = Queued | Loading | Started | Noise | Step | Finished | Missed | Eased | Terminal
