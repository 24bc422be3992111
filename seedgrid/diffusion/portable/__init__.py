"""Portable arithmetic: the same bits on every processor, whatever pipeline runs on it.

Everywhere else the kernels decide how a sum is rounded, so another processor, another number of
threads or another batch gives other last bits. Here the arithmetic is defined, not the kernel:
docs/portable.md is the definition, `portable` computes by it. Knows nothing of recipes or models.

    with portable():
        pipeline(...)
"""

from seedgrid.diffusion.portable.mode import native, portable

VERSION = "portable-1"

__all__ = ["VERSION", "native", "portable"]
