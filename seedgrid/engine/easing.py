"""Out of memory: ways to paint the same that need less, one after the other, each of them said.

First those that change no bit. Then those that stand in the passport, so that verifying does the
same: decoding one picture at a time, attention in slices, and last decoding in tiles, which changes
pictures the most. What is already so is left out.

    placement, notice = easier_way(placement, "cpu") or (placement, None)
"""

from dataclasses import replace
from typing import Final

from seedgrid.core.errors import Notice
from seedgrid.diffusion.backend import Offload, Placement

_OFFLOADS: Final[tuple[Offload, ...]] = ("none", "model", "group", "sequential")
"""Each needs less memory of the device than the one before."""


def easier_way(now: Placement, device: str) -> tuple[Placement, Notice] | None:
    """Return where to go on, and what to say of it; None where nothing needs less."""
    if not device.startswith("cpu") and now.offload != _OFFLOADS[-1]:
        offload = _OFFLOADS[_OFFLOADS.index(now.offload) + 1]
        return replace(now, offload=offload), Notice("memory_offload", value=offload)
    if not now.vae_slicing:
        return replace(now, vae_slicing=True), Notice("memory_decoding")
    if now.attention != "sliced":
        return replace(now, attention="sliced"), Notice("memory_attention")
    if not now.vae_tiling:
        return replace(now, vae_tiling=True), Notice("memory_tiles")
    return None
