"""What holds for one computation, and is put back: determinism, threads, torch's attention.

with computing(recipe, placement):
    ...
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import ATTENTION_NAMES, Placement, even_threads
from seedgrid.diffusion.determinism import determinism, restored

_KERNELS: Final = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@contextmanager
def computing(recipe: Recipe, placement: Placement) -> Iterator[None]:
    """Compute in the block as a recipe and a placement say.

    Raises:
        InputError: `attention_unknown`.
        DeviceError: As `determinism`.
    """
    if placement.attention not in ATTENTION_NAMES:
        choices = ", ".join(ATTENTION_NAMES)
        raise InputError(
            "attention_unknown", field="attention", value=placement.attention, choices=choices
        )
    kernel = _KERNELS.get(placement.attention)
    threads = torch.get_num_threads()
    with ExitStack() as stack:
        stack.enter_context(restored(placement.switches))
        stack.enter_context(determinism("off" if recipe.is_portable else recipe.determinism))
        if kernel is not None:
            stack.enter_context(sdpa_kernel(kernel))
        stack.callback(torch.set_num_threads, threads)
        torch.set_num_threads(placement.threads or even_threads(threads))
        yield
