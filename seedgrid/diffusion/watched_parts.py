"""The parts of a pipeline, and how somebody else is called in their place. Knows no probe."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Final, Protocol

import torch

from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.poison import Batch, mapped

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by place and by name."""

Call = Callable[..., Any]

IDS: Final = ("img_ids", "txt_ids")
"""Arguments that have no rows: positions in a picture, which may be as many by chance."""

MASK: Final = ("_mask",)
"""Arguments that say which words count; a neighbour's own are as bad as can be."""


class Watching(Protocol):
    """Watches a call of a pipeline."""

    def watching(self, pipeline: Any) -> AbstractContextManager[None]:
        """Watch every part of a pipeline in the block; afterwards it is as it was."""


def denoisers(pipeline: Any) -> dict[str, Any]:
    """Return the modules that compute at every step, by name: not those that read words once."""
    return {
        name: part
        for name, part in pipeline.components.items()
        if isinstance(part, torch.nn.Module) and name != "vae" and not _reads(name)
    }


def text_encoders(pipeline: Any) -> dict[str, Any]:
    """Return the modules that read words, by name."""
    return {
        name: part
        for name, part in pipeline.components.items()
        if isinstance(part, torch.nn.Module) and "text_encoder" in name
    }


def schedulers(pipeline: Any) -> dict[str, Any]:
    """Return what makes the steps, by name."""
    return {name: part for name, part in pipeline.components.items() if name.endswith("scheduler")}


def _reads(name: str) -> bool:
    return any(word in name for word in ("text_encoder", "image", "safety"))


def fits(batch: Batch, rows: torch.Tensor) -> Callable[[torch.Tensor], bool]:
    """Return what tells tensors of the batch from those that have as many rows by chance."""
    sizes = {rows.shape[0], batch.width}
    return lambda t: t.ndim > 0 and t.shape[0] in sizes and batch.is_of(t)


@contextmanager
def called_by(part: Any, caller: Callable[[Call, Given], Any]) -> Iterator[None]:
    """Have somebody else call a module in the block, hooks and all."""
    original = type(part)

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        plain = lambda *a, **k: original.__call__(module, *a, **k)  # noqa: E731 (a bound method)
        return caller(plain, (args, kwargs))

    part.__class__ = type(original.__name__, (original,), {"__call__": call})
    try:
        yield
    finally:
        part.__class__ = original


@contextmanager
def parts_called_by(
    pipeline: Any,
    denoise: Callable[[str, Call, Given], Any],
    decoding: Callable[[Call], Call],
    encoding: Callable[[Call], Call] | None = None,
) -> Iterator[None]:
    """Have somebody else call a pipeline's denoisers, by their names, and its VAE in the block."""
    with ExitStack() as stack:
        for name, part in denoisers(pipeline).items():
            stack.enter_context(called_by(part, partial(denoise, name)))
        vae = pipeline.components.get("vae")
        if vae is not None:
            stack.enter_context(replaced(vae, "decode", decoding(vae.decode)))
        if vae is not None and encoding is not None:
            stack.enter_context(replaced(vae, "encode", encoding(vae.encode)))
        yield


def changed(
    given: Given,
    is_row: Callable[[torch.Tensor], bool],
    change: Callable[[torch.Tensor], torch.Tensor],
    besides: tuple[str, ...] = IDS,
) -> Given:
    """Change the tensors of the batch among a call's arguments.

    Args:
        given: Arguments by place and by name.
        is_row: Tells which tensors have a row for every cell.
        change: Makes of a tensor another one.
        besides: The ends of names of arguments that stay as they are.
    """
    args, kwargs = given

    def one(tensor: torch.Tensor) -> torch.Tensor:
        return change(tensor) if is_row(tensor) else tensor

    named = {
        name: value if name.endswith(besides) else mapped(value, one)
        for name, value in kwargs.items()
    }
    return mapped(args, one), named
