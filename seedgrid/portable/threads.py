"""Divide an operation into pieces, each of which is computed whole by one thread.

torch's own threads wait for each other after every step, and a portable operation has a dozen short
steps or more. It changes no bit which thread computes a piece.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_taken = ContextVar[int]("taken", default=1)  # Over how many threads operations are spread


@contextmanager
def taken_from_torch() -> Iterator[None]:
    """In the block let torch use one thread, as others would spin, and use its number here."""
    count = torch.get_num_threads()
    token = _taken.set(count)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        _taken.reset(token)


def spread(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Return the work's result for each piece, in order; as many at a time as there are threads."""
    count = _taken.get()
    if count == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    return list(_threads(count).map(work, pieces))


def cuts(length: int, most: int, least: int = 1) -> list[slice]:
    """Cut a length into parts of about equal length, at most `most`, evenly for the threads.

    Parts are made smaller to occupy all threads only if they remain at least `least` long.
    """
    count, threads = max(1, -(-length // most)), _taken.get()
    even = -(-count // threads) * threads
    if length // even >= least:  # Otherwise more threads would cost more than they save.
        count = even
    size = max(1, -(-length // count))
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@lru_cache(maxsize=1)
def _threads(count: int) -> ThreadPoolExecutor:
    """Start threads in which torch uses no other ones; kept until another number is needed."""
    return ThreadPoolExecutor(count, thread_name_prefix="portable", initializer=_begin)


def _begin() -> None:
    # The first `get_num_threads` of a thread overwrites its number by the process's.
    torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
