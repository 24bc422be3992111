"""ZeroGpu: the GPU that a free Hugging Face Space lends, for some seconds at a time.

`spaces.GPU` is applied to `compute` alone, which then runs in a forked process that has CUDA; on
any other machine it changes nothing. `spaces` reads whose quota it is in the context of the visitor
who asked, in which the engine paints (`Run.context`). Never run on a GPU.
"""

import logging
import math
from collections.abc import Generator, Iterator
from typing import Final

from seedgrid.core.errors import RunError
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.away.computing import Batch, Message, compute

logger = logging.getLogger(__name__)

_LOADING_S: Final = 30  # Loading a model, on top of what painting takes
_MARGIN: Final = 1.5
_MAX_S: Final = 120  # What ZeroGPU lends at most to visitors who are not signed in


def seconds_for(batch: Batch, expected_s: float) -> int:  # noqa: ARG001 (called alike)
    """Return how many seconds to ask for: what was measured, with a margin, and the loading."""
    return min(_MAX_S, _LOADING_S + math.ceil(_MARGIN * expected_s))


def _compute(batch: Batch, expected_s: float) -> Iterator[Message]:  # noqa: ARG001 (same)
    yield from compute(batch)


class ZeroGpu:
    """See `RemoteWorker`. Made before torch: on a Space, importing `spaces` patches it."""

    def __init__(self) -> None:
        import spaces

        self._lent = spaces.GPU(duration=seconds_for)(_compute)
        self._speeds = Speeds()

    def compute(self, batch: Batch) -> Generator[Message]:
        """Run `computing.compute` on a GPU that is lent for it."""
        expected_s = self._speeds.estimate_s(batch.recipes) if batch.paint else 0.0
        try:
            for message in self._lent(batch, expected_s):
                if message[0] == "pictures":
                    self._speeds.note(batch.recipes[0], message[2])
                yield message
        except Exception as error:
            # Gradio's own error says why nothing was lent: no quota left, or none free. Errors of
            # painting are no exceptions here: `compute` sends them as messages.
            logger.warning("nothing was lent, or it was taken away", exc_info=True)
            reason = str(getattr(error, "message", "") or error)
            raise RunError("remote_failed", reason=reason) from error

    def close(self) -> None:
        """Do nothing: what is lent goes back by itself."""
