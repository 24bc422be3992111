"""Quicker ways to the very same bits. Each file here can be deleted without touching another.

Those of `PIPELINE` have a class `Accelerator` and change how a pipeline computes for a while; those
of `PROCESS` have a function `tune`, which changes a whole process (`diffusion/process.py`). A name
whose file is not there is passed over. Importing this needs no torch.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, Protocol, cast

PIPELINE: Final = ("text_cache", "decoding", "linears")
PROCESS: Final = ("malloc", "spinning")


class Accelerator(Protocol):
    """A quicker way for a pipeline; it remembers what it found out."""

    is_probed: bool
    """Whether the probe of the lock computes this way too: not where it would be given from memory
    what it wants to see computed."""

    def used_by(self, pipeline: Any, context: str) -> AbstractContextManager[None]:
        """Let a pipeline take the quicker way in the block; it is as before when that ends.

        Args:
            pipeline: Of diffusers.
            context: Everything that may change a bit beside what a part of the pipeline is given:
                weights, number format, passport.
        """


def make_accelerators() -> tuple[Accelerator, ...]:
    """Make one of each that there is; imports torch."""
    return tuple(cast("Accelerator", module.Accelerator()) for module in _modules(PIPELINE))


@contextmanager
def accelerated(pipeline: Any, accelerators: Sequence[Accelerator], context: str) -> Iterator[None]:
    """Let a pipeline take all the quicker ways in the block."""
    with ExitStack() as stack:
        for accelerator in accelerators:
            stack.enter_context(accelerator.used_by(pipeline, context))
        yield


def tune() -> None:
    """Change this process so that painting is quicker; before torch is imported."""
    for module in _modules(PROCESS):
        module.tune()


def _modules(names: Sequence[str]) -> list[ModuleType]:
    full = [f"{__name__}.{name}" for name in names]
    return [import_module(name) for name in full if find_spec(name) is not None]
