"""Out of memory: ways to paint the same that need less, one after the other, each of them said.

First those that change no bit. Then those that stand in the passport, so that verifying does the
same: decoding one picture at a time, attention in slices. Then a smaller batch, which is another
recipe; and last decoding in tiles, which changes pictures the most. What is already so is left out.

    for easier in easier_ways(placement, 4, "cpu"): …
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from seedgrid.core.errors import Notice
from seedgrid.core.recipe import LOCK_WIDTHS
from seedgrid.diffusion.backend import Offload, Placement

_OFFLOADS: Final[tuple[Offload, ...]] = ("none", "model", "group", "sequential")
"""Each needs less memory of the device than the one before."""


@dataclass(frozen=True, kw_only=True)
class EasierWay:
    """Where and in what batches to go on, and what to say of it."""

    placement: Placement
    lock_width: int
    notice: Notice


def easier_ways(placement: Placement, lock_width: int, device: str) -> Iterator[EasierWay]:
    """Return the ways from here on, each with all of those before it."""
    now, width = placement, lock_width

    def way(code: str, **data: object) -> EasierWay:
        return EasierWay(placement=now, lock_width=width, notice=Notice(code, **data))

    if not device.startswith("cpu"):
        for offload in _OFFLOADS[_OFFLOADS.index(now.offload) + 1 :]:
            now = replace(now, offload=offload)
            yield way("memory_offload", value=offload)
    if not now.vae_slicing:
        now = replace(now, vae_slicing=True)
        yield way("memory_decoding")
    if now.attention != "sliced":
        now = replace(now, attention="sliced")
        yield way("memory_attention")
    for width in (each for each in reversed(LOCK_WIDTHS) if each < lock_width):
        yield way("memory_width", width=width, usual=lock_width)
    if not now.vae_tiling:
        now = replace(now, vae_tiling=True)
        yield way("memory_tiles")
