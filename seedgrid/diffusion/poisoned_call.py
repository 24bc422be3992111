"""One call of a pipeline beside poisoned neighbours: each part is given them, and is compared.

What the own rows were that went into each part and came out of it is kept for `replayed_call.py`.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.poison import (
    ALONE,
    FLAT,
    KINDS,
    MILD,
    NEAR,
    WILD,
    Batch,
    Kind,
    is_finite,
    mapped,
    tensors_in,
)
from seedgrid.diffusion.poisoned_starts import PoisonedStarts
from seedgrid.diffusion.probe_findings import BETWEEN, Findings
from seedgrid.diffusion.watched_parts import (
    IDS,
    MASK,
    Call,
    Given,
    changed,
    fits,
    parts_called_by,
    schedulers,
    text_encoders,
)
from seedgrid.diffusion.witness import Record, Witness, own_numbers

COMPARED_EVERY: Final = 3
"""Calls of the denoiser: those that are run once more where no grid was watched."""


class PoisonedCall:
    """Watches one call of a pipeline.

    Args:
        batch: Which rows are the own ones.
        watch: Asked before everything that takes long whether to give way.
        found: Where comparisons are noted.
        witness: What the own picture was in a batch that was painted; without one,
            `replayed_call.py` compares.

    Attributes:
        record: The own rows, part by part.
    """

    def __init__(
        self, batch: Batch, watch: Watch, found: Findings, witness: Witness | None = None
    ) -> None:
        self.record = Record()
        self._witness = witness
        self._batch = batch
        self._watch = watch
        self._found = found
        self._turns: dict[str, int] = {}

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Watch every part of a pipeline in the block; afterwards it is as it was."""
        starts = PoisonedStarts(self._batch, self._found, self.record.encoded, self._run)
        with ExitStack() as stack:
            for name, part in text_encoders(pipeline).items():
                stack.enter_context(self._poisoned_words(name, part))
            for name, part in schedulers(pipeline).items():
                stack.enter_context(replaced(part, "step", self._stepping(name, part.step)))
            calls = parts_called_by(pipeline, self._denoise, self._decoding, starts.encoding)
            stack.enter_context(calls)
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
        """Run a denoiser beside poisoned neighbours."""
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*given[0], **given[1])
        turn, is_row = self._turn(name), fits(self._batch, rows)
        entered = own_numbers(self._batch, given, is_row)
        slots = turn % self._batch.width
        met, kinds = self._kinds(turn)
        poison = functools.partial(self._batch.poisoned, turn=met, kinds=kinds)
        poisoned = changed(given, is_row, poison, IDS + MASK)
        bad = changed(poisoned, is_row, lambda t: self._batch.moved(t, slots))
        result = self._moved_back(self._run(call, bad), slots)
        self._write_back(given, bad, is_row, slots)
        passed = self.record.keep(self._batch, name, turn, entered, result)
        after = own_numbers(self._batch, given, is_row)
        if not all(map(torch.equal, entered, after)):
            passed.written = after
        if self._witness is None and not is_finite(passed.left):
            # Are there no numbers when it is alone either?
            alone = self._run(call, self._around(given, is_row))
            theirs = list(filter(self._batch.is_of, tensors_in(alone)))
            self._found.note(f"denoiser ({name})", self._batch, passed.rows, theirs)
        self._compare(f"denoiser ({name})", (name, turn))
        return result

    def _around(self, given: Given, is_row: Callable[[torch.Tensor], bool]) -> Given:
        """Return the batch turned round."""
        copies = changed(given, is_row, self._batch.copies)
        turn = functools.partial(self._batch.turned_round, kind="near")
        return changed(copies, is_row, turn, IDS + MASK)

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
        """Decode beside poisoned neighbours."""

        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._batch.is_of(latents):
                return decode(latents, *args, **kwargs)
            turn = self._turn("vae")
            bad = self._batch.poisoned(latents, turn)
            result = self._run(decode, ((bad, *args), kwargs))
            self.record.keep(self._batch, "vae", turn, [self._batch.own_rows(latents)], result)
            self._compare("decoder", ("vae", turn))
            return mapped(result, lambda t: self._batch.poisoned(t, turn, FLAT))

        return watched

    def _compare(self, part: str, call: tuple[str, int]) -> None:
        """Compare the own rows of a call with the witness's, if there is one."""
        if self._witness is None:
            return
        passed, seen = self.record.passed[call], self._witness.record.passed.get(call)
        if seen is None:
            self._found.differs(part)
        self._found.note(BETWEEN, ALONE, passed.entered, seen.entered)
        self._found.note(part, ALONE, passed.rows, seen.rows)

    def _kinds(self, turn: int) -> tuple[int, tuple[Kind, ...]]:
        """Say how neighbours are poisoned at a call of the denoiser, so that few see all kinds.

        What is compared meets all kinds, mild neighbours, and such as are nearly the own picture;
        what is not meets wild ones.
        """
        compared, after = divmod(turn, COMPARED_EVERY)
        if self._witness is not None:
            return (compared * 2, KINDS) if not after else (compared, (MILD, NEAR)[after - 1])
        if after:
            return turn - compared - 1, WILD
        return compared // 3, (KINDS, MILD, NEAR)[compared % 3]

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
