"""The placement under which a passport was made, as far as it names what there is.

A passport may come from a stranger's file, so only known values are taken from it. Needs no torch.
"""

from typing import Final, cast, get_args

from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import ATTENTION_NAMES, Offload, Placement

MAX_THREADS: Final = 256


def placement_of(passport: Passport, *, device: str | None = None) -> Placement:
    """Return the placement under which a passport was made.

    Returns:
        A placement; what the passport does not know, or knows wrongly, is as usual.
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
