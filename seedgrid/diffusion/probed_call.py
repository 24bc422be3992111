"""ProbedCall: one call of a pipeline whose every part is watched beside poisoned neighbours.

The text encoders get neighbours whose embeddings are NaN or large; the denoiser gets, at every step
and in a slot that changes, neighbours whose latents and words are; so do the scheduler and the
decoder. NaN in the own picture is a leak at once. At every third step, at every step of the
scheduler and for the decoding, the own rows are compared with those of a batch of copies.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.poison import Batch, mapped, tensors_in
from seedgrid.diffusion.probe_findings import Findings

_COMPARED_EVERY: Final = 3
_IDS: Final = ("img_ids", "txt_ids")
"""Arguments that have no rows: positions in a picture, which may be as many by chance."""

_MASK: Final = ("_mask",)
"""Arguments that say which words count; a neighbour's own are as bad as can be."""


class Enough(Exception):  # noqa: N818 (the rest of the batch is not needed)
    """What enters the denoiser is known."""


class ProbedCall:
    """Watches one call of a pipeline.

    Args:
        batch: Which rows are the own ones.
        watch: Asked whether to give way.
        found: Where comparisons are noted.
        denoiser: The component that is run at every step.
        expected: What enters the denoiser first, of a batch of copies.
        ends_at_denoiser: Neighbours are left as they are, and the call ends where the denoiser
            would begin; `seen` is what would have entered it.
    """

    def __init__(
        self,
        batch: Batch,
        watch: Watch,
        found: Findings,
        *,
        denoiser: str,
        expected: list[torch.Tensor] | None = None,
        ends_at_denoiser: bool = False,
    ) -> None:
        self._batch = batch
        self._watch = watch
        self._found = found
        self._denoiser = denoiser
        self._expected = expected
        self._only_looks = ends_at_denoiser
        self._turns: dict[str, int] = {}
        self.seen: list[torch.Tensor] = []

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Watch every part of a pipeline in the block; afterwards it is as it was."""
        with ExitStack() as stack:
            for name, part in pipeline.components.items():
                if name == "vae":
                    if not self._only_looks:
                        decode = self._decoding(part.decode)
                        stack.enter_context(replaced(part, "decode", decode))
                elif name.endswith("scheduler"):
                    if not self._only_looks:
                        step = self._stepping(name, part)
                        stack.enter_context(replaced(part, "step", step))
                elif isinstance(part, torch.nn.Module):
                    stack.enter_context(self._part(name, part))
            yield

    @contextmanager
    def _part(self, name: str, part: Any) -> Iterator[None]:
        if "text_encoder" in name or "image" in name or "safety" in name:
            if "text_encoder" in name and not self._only_looks:
                with self._poisoned_words(name, part):
                    yield
                return
            yield
            return
        with _called_by(part, lambda call, args, kwargs: self._denoise(name, call, args, kwargs)):
            yield

    @contextmanager
    def _poisoned_words(self, name: str, encoder: Any) -> Iterator[None]:
        """Poison what a text encoder makes of its neighbours' tokens, in its first layer."""

        def poison(module: Any, given: Any, embeddings: Any) -> Any:  # noqa: ARG001 (a hook's)
            self._give_way()
            is_batch = isinstance(embeddings, torch.Tensor) and self._batch.is_of(embeddings)
            return self._batch.poisoned(embeddings, self._turn(name)) if is_batch else embeddings

        handle = encoder.get_input_embeddings().register_forward_hook(poison)
        try:
            yield
        finally:
            handle.remove()

    def _denoise(self, name: str, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a denoiser beside poisoned neighbours, and now and then with copies only."""
        given = (args, kwargs)
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*args, **kwargs)
        turn = self._turn(name)
        if turn == 0 and name == self._denoiser:
            self._compare_beginning(given, rows)
        if self._only_looks:
            return call(*args, **kwargs)
        fits = self._fits(rows)
        alone = None
        # Before the poisoned one: what tries out kernels at their first use tries sane numbers.
        if turn % _COMPARED_EVERY == 0:
            alone = self._run(call, _changed(given, fits, self._batch.copies))
        slots = turn % self._batch.width
        poisoned = _changed(given, fits, lambda t: self._batch.poisoned(t, turn), _IDS + _MASK)
        bad = _changed(poisoned, fits, lambda t: self._batch.moved(t, slots))
        result = self._moved_back(self._run(call, bad), slots)
        self._write_back(given, bad, fits, slots)
        self._judge(f"denoiser ({name})", result, alone, call, given, fits)
        return result

    def _judge(
        self, part: str, result: Any, alone: Any, call: Callable[..., Any], given: Any, fits: Any
    ) -> None:
        """Compare with copies where they were computed, or where the own picture has no numbers."""
        if alone is None:
            own = [
                self._batch.own_rows(t)
                for t in tensors_in(result)
                if t.is_floating_point() and self._batch.is_of(t)
            ]
            if all(torch.isfinite(rows).all() for rows in own):
                return
            alone = self._run(call, _changed(given, fits, self._batch.copies))
        self._found.note(part, self._batch, result, alone)

    def _compare_beginning(self, given: Any, rows: torch.Tensor) -> None:
        """Compare the first noise and the words' embeddings with those of a batch of copies."""
        fits = self._fits(rows)
        entering = [t for t in tensors_in(given) if t.is_floating_point() and fits(t)]
        if self._only_looks:
            self.seen = [tensor.clone() for tensor in entering]
            raise Enough
        self._found.note("noise and words", self._batch, entering, self._expected)

    def _decoding(self, decode: Callable[..., Any]) -> Callable[..., Any]:
        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._batch.is_of(latents):
                return decode(latents, *args, **kwargs)
            turn = self._turn("vae")
            slots = self._batch.width - 1
            alone = self._run(decode, ((self._batch.copies(latents), *args), kwargs))
            bad = self._batch.moved(self._batch.poisoned(latents, turn), slots)
            result = self._moved_back(self._run(decode, ((bad, *args), kwargs)), slots)
            self._found.note("decoder", self._batch, result, alone)
            return alone

        return watched

    def _stepping(self, name: str, scheduler: Any) -> Callable[..., Any]:
        """Run a scheduler beside poisoned neighbours, and another one with copies only."""
        original = scheduler.step
        shadow: Any = None
        generators: list[torch.Generator] | None = None

        # diffusers reads the signature to see whether a scheduler takes generators.
        @functools.wraps(original)
        def watched(output: Any, timestep: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal shadow, generators
            if not (self._batch.is_of(sample) and self._batch.is_of(output)):
                return original(output, timestep, sample, *args, **kwargs)
            if shadow is None:
                shadow = _twin(scheduler)
                generators = _own_generators(kwargs.get("generator"), self._batch)
            mine = kwargs | ({"generator": generators} if generators else {})
            copies = (self._batch.copies(output), timestep, self._batch.copies(sample))
            alone = type(scheduler).step(shadow, *copies, *args, **mine)
            result = original(output, timestep, sample, *args, **kwargs)
            self._found.note(name.replace("_", " "), self._batch, result, alone)
            return result

        return watched

    def _run(self, call: Callable[..., Any], given: tuple[Any, dict[str, Any]]) -> Any:
        self._give_way()
        args, kwargs = given
        return call(*args, **kwargs)

    def _give_way(self) -> None:
        if self._watch.cancelled:
            raise RunCancelled("run_cancelled")

    def _turn(self, name: str) -> int:
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        return turn

    def _fits(self, rows: torch.Tensor) -> Callable[[torch.Tensor], bool]:
        """Return what tells tensors of the batch from those that have as many rows by chance."""
        sizes = {rows.shape[0], self._batch.width}
        return lambda t: t.ndim > 0 and t.shape[0] in sizes and self._batch.is_of(t)

    def _moved_back(self, result: Any, slots: int) -> Any:
        def back(tensor: torch.Tensor) -> torch.Tensor:
            return self._batch.moved(tensor, -slots) if self._batch.is_of(tensor) else tensor

        return mapped(result, back)

    def _write_back(self, given: Any, bad: Any, fits: Callable[..., bool], slots: int) -> None:
        """Let what was written into the inputs be in the pipeline's own, as it would have been."""
        for mine, theirs in zip(tensors_in(given), tensors_in(bad), strict=True):
            if mine is not theirs and fits(mine) and mine.is_contiguous():
                mine.copy_(self._batch.moved(theirs, -slots))


def _changed(
    given: Any,
    fits: Callable[[torch.Tensor], bool],
    change: Callable[[torch.Tensor], torch.Tensor],
    besides: tuple[str, ...] = _IDS,
) -> Any:
    """Change the tensors of the batch among a call's arguments.

    Args:
        given: Arguments by place and by name.
        fits: Tells which tensors have a row for every cell.
        change: Makes of a tensor another one.
        besides: The ends of names of arguments that stay as they are.
    """
    args, kwargs = given

    def one(tensor: torch.Tensor) -> torch.Tensor:
        return change(tensor) if fits(tensor) else tensor

    named = {
        name: value if name.endswith(besides) else mapped(value, one)
        for name, value in kwargs.items()
    }
    return mapped(args, one), named


@contextmanager
def _called_by(part: Any, caller: Callable[[Callable[..., Any], Any, Any], Any]) -> Iterator[None]:
    """Have somebody else call a module in the block, hooks and all."""
    original = type(part)

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        plain = lambda *a, **k: original.__call__(module, *a, **k)  # noqa: E731 (a bound method)
        return caller(plain, args, kwargs)

    part.__class__ = type(original.__name__, (original,), {"__call__": call})
    try:
        yield
    finally:
        part.__class__ = original


def _twin(scheduler: Any) -> Any:
    """Copy a scheduler as it is before its first step, without whoever listens to it."""
    twin = copy.copy(scheduler)
    twin.__dict__ = {
        # A configuration is frozen, and cannot be copied in depth either.
        name: value if value is scheduler.config else copy.deepcopy(value)
        for name, value in vars(scheduler).items()
        if name != "step"
    }
    return twin


def _own_generators(given: Any, batch: Batch) -> list[torch.Generator] | None:
    """Return a generator a slot, each where the own picture's is now."""
    if not isinstance(given, list):
        return None
    return [given[batch.own].clone_state() for _ in range(batch.width)]
