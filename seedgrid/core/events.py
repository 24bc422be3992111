"""Events of a run: frozen dataclasses without tensors or callables.

A run announces `Queued` while it waits, also between two batches; `Loading` when a model must be
loaded; `Started`, `Noise`, `Step` for a batch; `Finished` or `Missed` for a picture (reused
ones may come first); `Eased`; and at the end exactly one of `Done`, `Cancelled`, `Failed`.
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
    """The initial noise of these cells; sent before the first step when previews are on."""

    cells: tuple[int, ...]
    # One small RGB picture for each cell: a preview of the noise at half its strength
    previews: tuple[Pixels, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the denoiser is done for these cells."""

    cells: tuple[int, ...]
    number: int  # From 1 to `total`
    total: int
    left_s: float | None = None  # Estimated, until the run ends; None before two steps are done
    previews: tuple[Pixels, ...] = field(default=(), repr=False)  # RGB, one for each cell
    tile: int = 0  # After the last step, when decoding in tiles: the current tile, from 1
    num_tiles: int = 0  # Number of tiles; 0 before decoding, and without tiles


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One picture is finished and stored in the library."""

    cell: int
    entry: Entry
    remembered: bool = False  # Whether it was in the library and not computed


@dataclass(frozen=True, kw_only=True)
class Missed:
    """One picture failed, which does not affect the others of its batch; the run goes on."""

    cell: int
    error: SeedGridError  # The run ends with `Failed` and the first of these errors


@dataclass(frozen=True, kw_only=True)
class Eased:
    """Memory was full; the run goes on with less of it, as the notice says."""

    notice: Notice


@dataclass(frozen=True, kw_only=True)
class Done:
    """Every picture of the run is finished."""

    elapsed_s: float


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The run was stopped on request; finished pictures stay in the library."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The run could not go on, or missed a picture; finished pictures stay in the library."""

    error: SeedGridError


Terminal = Done | Cancelled | Failed
Event = Queued | Loading | Started | Noise | Step | Finished | Missed | Eased | Terminal
