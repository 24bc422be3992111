"""The picture that others begin from, encoded beside poisoned ones, or after them. Knows no probe.

All cells of a batch have the same start, so no neighbour's differs; but diffusers encodes it once
for each generator, and what one picture leaves behind must not reach the next one.
"""

from collections.abc import Callable
from typing import Any, Final

import torch

from seedgrid.diffusion.poison import ALONE, Batch, tensors_in
from seedgrid.diffusion.probe_findings import Findings
from seedgrid.diffusion.watched_parts import Call, Given

_PART: Final = "encoder of the start"


class PoisonedStarts:
    """Watches the encoding of starts.

    Args:
        batch: Which rows are the own ones.
        found: Where comparisons are noted.
        encoded: Pictures (1, 3, height, width) and what was made of them are put here.
        run: Calls the encoder, or gives way.
    """

    def __init__(
        self,
        batch: Batch,
        found: Findings,
        encoded: list[tuple[torch.Tensor, Any]],
        run: Callable[[Call, Given], Any],
    ) -> None:
        self._batch = batch
        self._found = found
        self._encoded = encoded
        self._run = run

    def encoding(self, encode: Call) -> Call:
        """Return what is called in place of the encoder."""

        def watched(images: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            def run(pictures: torch.Tensor) -> Any:
                return self._run(encode, ((pictures, *args), kwargs))

            together = self._batch.width > 1 and self._batch.is_of(images)
            return (self._together if together else self._one_by_one)(images, run)

        return watched

    def _together(self, images: torch.Tensor, run: Call) -> Any:
        """Encode a batch beside poisoned neighbours, and turned round."""
        alone = run(self._batch.turned_round(self._batch.copies(images)))
        result = run(self._batch.poisoned(images, 0))
        own = [self._batch.own_rows(rows) for rows in _numbers(result)]
        self._found.note(_PART, self._batch, own, _numbers(alone))
        return result

    def _one_by_one(self, images: torch.Tensor, run: Call) -> Any:
        """Encode a picture after a poisoned one, and the same ones to the same numbers."""
        result = run(images)
        if not self._encoded:
            self._encoded.append((images.clone(), result))
            run(torch.full_like(images, torch.nan))
            result = run(images)
        known, before = self._encoded[0]
        if torch.equal(known, images):
            self._found.note(_PART, ALONE, _numbers(result), _numbers(before))
        return result


def _numbers(output: Any) -> list[torch.Tensor]:
    """Return the tensors of an encoder's output; a distribution is one by its parameters."""
    first = output[0]
    return [first.parameters] if hasattr(first, "parameters") else tensors_in(output)
