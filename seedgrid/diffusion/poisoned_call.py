"""One call of a pipeline beside poisoned neighbours: each part is given them, and is compared.

What the own rows were that went into each part and came out of it is kept for `replayed_call.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.poison import FLAT, KINDS, MILD, WILD, Batch, mapped, tensors_in
from seedgrid.diffusion.poisoned_starts import PoisonedStarts
from seedgrid.diffusion.probe_findings import Findings
from seedgrid.diffusion.watched_parts import (
    IDS,
    MASK,
    Call,
    Given,
    called_by,
    changed,
    denoisers,
    fits,
    schedulers,
    text_encoders,
)

_COMPARED_EVERY: Final = 3


@dataclass(kw_only=True)
class Passed:
    """The own rows of what went through a part in one call.

    Attributes:
        entered: Of the numbers that it was given, each (k, …).
        written: The same afterwards, where the part wrote into what it was given.
        left: What it gave back, with own rows only.
        has_rows: Which tensors of `left` had a row for every cell.
    """

    entered: list[torch.Tensor]
    left: Any
    has_rows: list[bool]
    written: list[torch.Tensor] | None = None


@dataclass
class Record:
    """What passed, by the part's name and the number of its call; and starts that were encoded."""

    passed: dict[tuple[str, int], Passed] = field(default_factory=dict)
    encoded: list[tuple[torch.Tensor, Any]] = field(default_factory=list)


class PoisonedCall:
    """Watches one call of a pipeline.

    Attributes:
        record: The own rows, part by part.
    """

    def __init__(self, batch: Batch, watch: Watch, found: Findings) -> None:
        self.record = Record()
        self._batch = batch
        self._watch = watch
        self._found = found
        self._turns: dict[str, int] = {}

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Watch every part of a pipeline in the block; afterwards it is as it was."""
        with ExitStack() as stack:
            for name, part in text_encoders(pipeline).items():
                stack.enter_context(self._poisoned_words(name, part))
            for name, part in denoisers(pipeline).items():
                stack.enter_context(called_by(part, functools.partial(self._denoise, name)))
            for name, part in schedulers(pipeline).items():
                stack.enter_context(replaced(part, "step", self._stepping(name, part.step)))
            vae = pipeline.components.get("vae")
            if vae is not None:
                stack.enter_context(replaced(vae, "decode", self._decoding(vae.decode)))
                starts = PoisonedStarts(self._batch, self._found, self.record.encoded, self._run)
                stack.enter_context(replaced(vae, "encode", starts.encoding(vae.encode)))
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

    def _denoise(self, name: str, call: Call, given: Given) -> Any:
        """Run a denoiser beside poisoned neighbours, and now and then turned round."""
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*given[0], **given[1])
        turn, is_row = self._turn(name), fits(self._batch, rows)
        entered = self._own_numbers(given, is_row)
        around = changed(given, is_row, self._batch.copies)
        around = changed(around, is_row, self._batch.turned_round, IDS + MASK)
        # Before the poisoned one: what tries out kernels at their first use tries sane numbers.
        alone = self._run(call, around) if turn % _COMPARED_EVERY == 0 else None
        slots = turn % self._batch.width
        poison = functools.partial(self._batch.poisoned, **_kinds(turn))
        poisoned = changed(given, is_row, poison, IDS + MASK)
        bad = changed(poisoned, is_row, lambda t: self._batch.moved(t, slots))
        result = self._moved_back(self._run(call, bad), slots)
        self._write_back(given, bad, is_row, slots)
        passed = self._keep(name, turn, entered, result)
        after = self._own_numbers(given, is_row)
        if not all(map(torch.equal, entered, after)):
            passed.written = after
        if alone is None and not _is_finite(passed.left):
            # Are there no numbers when it is alone either?
            alone = self._run(call, around)
        if alone is not None:
            self._compare(f"denoiser ({name})", passed, alone)
        return result

    def _stepping(self, name: str, step: Call) -> Call:
        """Let a scheduler make its step beside poisoned neighbours."""

        # diffusers reads the signature to see whether a scheduler takes generators.
        @functools.wraps(step)
        def watched(output: Any, timestep: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
            if self._batch.is_of(sample) and self._batch.is_of(output):
                turn = self._turn(name)
                kinds = MILD if turn % 2 else KINDS
                output = self._batch.poisoned(output, turn // 2, kinds)
                sample = self._batch.poisoned(sample, turn // 2, kinds)
            return step(output, timestep, sample, *args, **kwargs)

        return watched

    def _decoding(self, decode: Call) -> Call:
        """Decode beside poisoned neighbours, and turned round."""

        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._batch.is_of(latents):
                return decode(latents, *args, **kwargs)
            turn = self._turn("vae")
            around = self._batch.turned_round(self._batch.copies(latents))
            alone = self._run(decode, ((around, *args), kwargs))
            bad = self._batch.poisoned(latents, turn)
            result = self._run(decode, ((bad, *args), kwargs))
            entered = [self._batch.own_rows(latents)]
            self._compare("decoder", self._keep("vae", turn, entered, result), alone)
            return mapped(result, lambda t: self._batch.poisoned(t, turn, FLAT))

        return watched

    def _keep(self, name: str, turn: int, entered: list[torch.Tensor], result: Any) -> Passed:
        """Keep own rows; those that went in as they did in the call before are kept once."""
        before = self.record.passed.get((name, turn - 1))
        if before is not None and len(before.entered) == len(entered):
            entered = [
                old if torch.equal(old, new) else new
                for old, new in zip(before.entered, entered, strict=True)
            ]
        has_rows = [self._batch.is_of(tensor) for tensor in tensors_in(result)]
        own = mapped(result, lambda t: self._batch.own_rows(t) if self._batch.is_of(t) else t)
        passed = Passed(entered=entered, left=own, has_rows=has_rows)
        self.record.passed[name, turn] = passed
        return passed

    def _compare(self, part: str, passed: Passed, alone: Any) -> None:
        pairs = zip(tensors_in(passed.left), passed.has_rows, strict=True)
        own = [tensor for tensor, has_rows in pairs if has_rows]
        self._found.note(part, self._batch, own, list(filter(self._batch.is_of, tensors_in(alone))))

    def _own_numbers(
        self, given: Given, is_row: Callable[[torch.Tensor], bool]
    ) -> list[torch.Tensor]:
        return [self._batch.own_rows(t) for t in numbers_in(given, is_row)]

    def _run(self, call: Call, given: Given) -> Any:
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

    def _moved_back(self, result: Any, slots: int) -> Any:
        def back(tensor: torch.Tensor) -> torch.Tensor:
            return self._batch.moved(tensor, -slots) if self._batch.is_of(tensor) else tensor

        return mapped(result, back)

    def _write_back(self, given: Given, bad: Given, is_row: Call, slots: int) -> None:
        """Let what was written into the inputs be in the pipeline's own, as it would have been."""
        for mine, theirs in zip(tensors_in(given), tensors_in(bad), strict=True):
            if mine is not theirs and is_row(mine) and mine.is_contiguous():
                mine.copy_(self._batch.moved(theirs, -slots))


def _kinds(turn: int) -> dict[str, Any]:
    """Say how neighbours are poisoned at a call of the denoiser, so that few calls see all kinds.

    What is compared meets now all kinds, now mild neighbours; what is not meets wild ones.
    """
    compared, after = divmod(turn, _COMPARED_EVERY)
    if after:
        return {"turn": turn - compared - 1, "kinds": WILD}
    return {"turn": compared // 2, "kinds": MILD if compared % 2 else KINDS}


def numbers_in(given: Given, is_row: Callable[[torch.Tensor], bool]) -> list[torch.Tensor]:
    """Return the numbers among a call's arguments that have a row for every cell."""
    return [t for t in tensors_in(given) if t.is_floating_point() and is_row(t)]


def _is_finite(value: Any) -> bool:
    numbers = (tensor for tensor in tensors_in(value) if tensor.is_floating_point())
    return all(bool(torch.isfinite(tensor).all()) for tensor in numbers)
