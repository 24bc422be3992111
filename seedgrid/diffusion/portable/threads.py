"""Let each thread compute whole pieces of an operation by itself.

torch divides every step between its threads, which wait for each other after it; a piece of a
portable operation is a dozen short steps or more. Which thread computes a piece, and beside which
others, cannot show in a bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def spread(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Return what the work makes of each piece, in order; as many at a time as torch has threads.

    A single piece is left to torch's own threads.
    """
    count = torch.get_num_threads()
    if count == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    return list(_threads(count).map(work, pieces))


def cuts(length: int, most: int, least: int = 1) -> list[slice]:
    """Cut a length into equal parts, in a number that torch's threads share evenly.

    Args:
        length: Of nothing there are no parts.
        most: Of a part.
        least: Of a part that is cut for the threads' sake alone.
    """
    count, threads = max(1, -(-length // most)), torch.get_num_threads()
    even = -(-count // threads) * threads
    if length // even >= least:  # Else further threads would cost more than they give.
        count = even
    size = max(1, -(-length // count))
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@lru_cache(maxsize=1)
def _threads(count: int) -> ThreadPoolExecutor:
    """Start threads in which torch uses no further ones, and keep them until others are wanted."""
    all_there = threading.Barrier(count)

    def begin() -> None:
        torch.get_num_threads()  # A thread takes the process's number when it is first asked,
        torch.set_num_threads(1)  # so only now does its own one stay.
        torch.set_grad_enabled(False)
        all_there.wait()

    pool = ThreadPoolExecutor(count, thread_name_prefix="portable")
    for started in [pool.submit(begin) for _ in range(count)]:
        started.result()
    torch.set_num_threads(count)  # The last number said is the one that later threads begin with.
    return pool
