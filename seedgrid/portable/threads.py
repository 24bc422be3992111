"""Divide an operation into pieces, each of which is computed whole by one thread.

torch's own threads wait for each other after every step, and a portable operation has a dozen short
steps or more. Which thread computes a piece changes no bit.
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

_num_threads = ContextVar[int]("num_threads", default=1)  # On which `spread` computes pieces


@contextmanager
def taken_from_torch() -> Iterator[None]:
    """In the block give torch's threads to `spread`; torch keeps one, as idle ones would spin."""
    count = torch.get_num_threads()
    token = _num_threads.set(count)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        _num_threads.reset(token)


def spread(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Return `work`'s result for each piece, in order; each thread computes one at a time."""
    count = _num_threads.get()
    if count == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    return list(_thread_pool(count).map(work, pieces))


def cuts(length: int, most: int, least: int = 1) -> list[slice]:
    """Cut a length into slices of about equal length, each at most `most` long.

    Their number is rounded up to a multiple of the threads if they remain at least `least` long.
    """
    count, threads = max(1, -(-length // most)), _num_threads.get()
    rounded_up = -(-count // threads) * threads
    if length // rounded_up >= least:  # Otherwise more threads would cost more than they save.
        count = rounded_up
    size = max(1, -(-length // count))
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@lru_cache(maxsize=1)
def _thread_pool(count: int) -> ThreadPoolExecutor:
    """Return threads in which torch uses one thread; cached until another number is needed."""
    return ThreadPoolExecutor(count, thread_name_prefix="portable", initializer=_initialise_thread)


def _initialise_thread() -> None:
    # Called first, as a thread's first call sets its number of threads to the process's.
    torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
