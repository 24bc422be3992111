"""The compiled denoiser of a pipeline: making it (in a child process), and painting with it.

The denoiser is what a pipeline calls at each step: its `unet` or its `transformer`. torch exports
the very call that the pipeline makes and compiles it; painting, that call runs the compiled code
instead. Sizes are fixed, so a package fits one width and size only (compiling.py names it so).
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from seedgrid.core.errors import CompileError
from seedgrid.diffusion.accel.compiling import PACKAGE_NAME, UNFINISHED
from seedgrid.diffusion.backend import Unwatched
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.worker.child import read_work

Forward = Callable[..., Any]

MAX_LOADED: Final = 2
INDUCTOR: Final = {"freezing": True, "cpp.dynamic_threads": True}
"""Weights become part of the code and are laid out for it: half of what compiling gives. As many
threads as torch has when it paints, not as it had when it compiled: the passport says how many."""


class Denoisers:
    """The compiled denoisers that are loaded, the most recently used last."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[Path, Forward] = OrderedDict()

    @contextmanager
    def used_by(self, pipeline: Any, package: Path | None) -> Iterator[None]:
        """Have a pipeline's denoiser run compiled in the block; None leaves it as it is.

        Raises:
            CompileError: `compile_failed`: the package cannot be loaded.
        """
        if package is None:
            yield
            return
        with replaced(denoiser_of(pipeline), "forward", self._get(package)):
            yield

    def clear(self) -> None:
        """Let go of all of them."""
        self._loaded.clear()

    def _get(self, package: Path) -> Forward:
        if package not in self._loaded:
            while len(self._loaded) >= MAX_LOADED:
                self._loaded.popitem(last=False)
            try:
                self._loaded[package] = _load(package)
            except (RuntimeError, OSError, ValueError, KeyError) as error:
                package.unlink(missing_ok=True)  # Damaged: the next one makes it again.
                reason = str(error).split("\n")[0][:200]
                raise CompileError("compile_failed", reason=reason) from error
        self._loaded.move_to_end(package)
        return self._loaded[package]


def denoiser_of(pipeline: Any) -> torch.nn.Module:
    """Return what a pipeline calls at each step.

    Raises:
        CompileError: `compile_failed`: it has no such part.
    """
    for name in ("unet", "transformer"):
        found = getattr(pipeline, name, None)
        if isinstance(found, torch.nn.Module):
            return found
    raise CompileError("compile_failed", reason=f"{type(pipeline).__name__} has no denoiser")


def _load(package: Path) -> Forward:
    """Load compiled code; the files that torch unpacks for it go at once.

    It would delete them at the end of the process, but not when that is killed, and they are as
    large as the weights. What is mapped into memory stays there without its name.
    """
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(
        dir=package.parent, prefix=UNFINISHED, ignore_cleanup_errors=True
    ) as folder:
        os.environ["TMPDIR"] = folder
        try:
            return torch._inductor.aoti_load_package(str(package))
        finally:
            del os.environ["TMPDIR"]
            if before is not None:
                os.environ["TMPDIR"] = before


def make_package(folder: Path) -> None:
    """Compile the denoiser that a folder's work asks for, and leave the package there.

    Args:
        folder: With what `child.write_work` wrote: the first recipe counts.

    Raises:
        CompileError: `compile_failed`.
        SeedGridError: The recipe cannot be painted.
    """
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend

    backend = DiffusersBackend()
    recipes, placement = read_work(folder)
    plain = recipes[0].replace(compiled=False)
    pipeline = backend.load(plain, placement)
    denoiser = denoiser_of(pipeline)

    def first_call(*args: Any, **kwargs: Any) -> None:
        compile_call(denoiser, args, kwargs, folder / PACKAGE_NAME)
        raise _MadeError

    try:
        with replaced(denoiser, "forward", first_call):
            backend.paint([plain], placement, Unwatched())
    except _MadeError:
        return
    raise CompileError("compile_failed", reason="the pipeline never called its denoiser")


def compile_call(
    denoiser: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], package: Path
) -> None:
    """Export and compile one call of a denoiser; only the shapes of its tensors count.

    Args:
        denoiser: On the processor.
        args: What the pipeline gives it.
        kwargs: What the pipeline gives it by name.
        package: Where the compiled code goes.

    Raises:
        CompileError: `compile_failed`: a number that is no tensor would be a part of the code, and
            the next step's would be passed over.
    """
    numbers = [x for x in tree_leaves((args, kwargs)) if type(x) in (int, float)]
    if numbers:
        raise CompileError("compile_failed", reason=f"{numbers[0]} is given to it outside a tensor")
    with torch.no_grad():
        program = torch.export.export(_Call(denoiser), args, kwargs)
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(package), inductor_configs=INDUCTOR
        )


class _Call(torch.nn.Module):
    """What torch exports: a denoiser's own `forward`, whatever stands in its place just now."""

    def __init__(self, denoiser: torch.nn.Module) -> None:
        super().__init__()
        self.denoiser = denoiser

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return type(self.denoiser).forward(self.denoiser, *args, **kwargs)


class _MadeError(Exception):
    """The way out of a pipeline's call: there is nothing more to compute."""
