"""One call of a pipeline whose denoiser and decoder only give back what they gave before.

What lies between the parts is all there, and next to nothing is computed. Only where no grid was
watched, every third call of the denoiser and the decoding are run for the comparison, here and not
beside the poisoned ones: what travels past the parts' inputs is of other neighbours, too.
The own picture is in every slot but the one that it had beside poisoned neighbours; a neighbour is
there. What enters a part must be the very rows that entered it then, bit for bit, in each slot.
"""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.poison import Batch, mapped, tensors_in
from seedgrid.diffusion.poisoned_call import COMPARED_EVERY
from seedgrid.diffusion.probe_findings import BETWEEN, Findings
from seedgrid.diffusion.watched_parts import (
    IDS,
    MASK,
    Call,
    Given,
    called_by,
    changed,
    denoisers,
    fits,
    parts_called_by,
)
from seedgrid.diffusion.witness import Passed, Record, numbers_in

_BEGINNING: Final = "noise and words"


class ReplayedCall:
    """Watches one call of a pipeline.

    Args:
        batch: Which slot was the own one; here it is in all others.
        watch: Asked whether to give way.
        found: Where comparisons are noted.
        record: What passed in the call beside poisoned neighbours.
        compares: Whether parts are run here; else what a witness saw was compared.
    """

    def __init__(
        self, batch: Batch, watch: Watch, found: Findings, record: Record, *, compares: bool
    ) -> None:
        self._compares = compares
        self._batch = batch
        self._watch = watch
        self._found = found
        self._record = record
        self._turns: dict[str, int] = {}

    def watching(self, pipeline: Any) -> AbstractContextManager[None]:
        """Watch every part of a pipeline in the block; afterwards it is as it was."""
        return parts_called_by(pipeline, self._denoise, self._decoding, self._encoding)

    def check_number_of_calls(self) -> None:
        """Make sure that as many calls were made as before.

        Raises:
            LeakFound: Fewer were.
        """
        if sum(self._turns.values()) != len(self._record.passed):
            self._found.differs(BETWEEN)

    def _denoise(self, name: str, call: Call, given: Given) -> Any:
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*given[0], **given[1])
        is_row = fits(self._batch, rows)
        compared, after = divmod(self._turns.get(name, 0), COMPARED_EVERY)
        if self._compares and not after:
            # By turns beside what is nearly the own picture, and beside another one.
            around = given if compared % 2 else changed(given, is_row, self._own_everywhere)
            near = functools.partial(self._batch.turned_round, kind="near")
            around = changed(around, is_row, near, IDS + MASK)
            self._compare(f"denoiser ({name})", name, call, around)
        return self._passing(name, numbers_in(given, is_row))

    def _decoding(self, decode: Call) -> Call:
        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._batch.is_of(latents):
                return decode(latents, *args, **kwargs)
            if self._compares:
                around = self._batch.turned_round(self._own_everywhere(latents))
                self._compare("decoder", "vae", decode, ((around, *args), kwargs))
            return self._passing("vae", [latents])

        return watched

    def _encoding(self, encode: Call) -> Call:
        """Give back what was made of the very same picture; a batch of them is encoded anew."""

        def watched(images: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            for known, output in self._record.encoded:
                if torch.equal(known, images):
                    return output
            return encode(images, *args, **kwargs)

        return watched

    def _own_everywhere(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the own rows in every slot: here they are in the one behind the own."""
        return self._batch.copies(self._batch.moved(tensor, -1))

    def _compare(self, part: str, name: str, call: Call, given: Given) -> None:
        """Run a part, and compare what comes out with the own rows beside poisoned neighbours."""
        self._give_way()
        args, kwargs = given
        left = list(filter(self._batch.is_of, tensors_in(call(*args, **kwargs))))
        passed = self._record.passed.get((name, self._turns.get(name, 0)))
        if passed is None:
            self._found.differs(BETWEEN)
        self._found.note(part, self._batch, passed.rows, left)

    def _give_way(self) -> None:
        if self._watch.cancelled:
            raise RunCancelled("run_cancelled")

    def _passing(self, name: str, entering: list[torch.Tensor]) -> Any:
        """Compare what enters a part, and give back what it gave."""
        self._give_way()
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        passed = self._record.passed.get((name, turn))
        if passed is None:
            self._found.differs(BETWEEN)
        is_first = turn == 0 and name != "vae"
        self._found.note(_BEGINNING if is_first else BETWEEN, self._batch, passed.entered, entering)
        for tensor, rows in zip(entering, passed.written or (), strict=False):
            tensor.copy_(self._spread(rows))
        return self._given_back(passed)

    def _given_back(self, passed: Passed) -> Any:
        has_rows = iter(passed.has_rows)
        return mapped(passed.left, lambda t: self._spread(t) if next(has_rows) else t)

    def _spread(self, rows: torch.Tensor) -> torch.Tensor:
        """Make a batch (k W, …) of own rows (k, …), with a neighbour in the own slot."""
        return self._batch.turned_round(rows.repeat_interleave(self._batch.width, dim=0))


class BeginningSeen(Exception):  # noqa: N818 (it ends a call; nothing went wrong)
    """What enters the denoiser was seen, and nothing more is wanted."""


class Beginning:
    """Watches a call of a pipeline up to what enters its denoiser, and ends it there.

    Attributes:
        entered: The numbers with a row for every cell, each (k W, …).
    """

    def __init__(self, batch: Batch, watch: Watch) -> None:
        self.entered: list[torch.Tensor] = []
        self._batch = batch
        self._watch = watch

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Watch the denoisers in the block; afterwards the pipeline is as it was."""
        with ExitStack() as stack:
            for part in denoisers(pipeline).values():
                stack.enter_context(called_by(part, self._end))
            yield

    def _end(self, call: Call, given: Given) -> Any:
        if self._watch.cancelled:
            raise RunCancelled("run_cancelled")
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*given[0], **given[1])
        self.entered = [t.clone() for t in numbers_in(given, fits(self._batch, rows))]
        raise BeginningSeen
