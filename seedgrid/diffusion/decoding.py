"""Decode the pictures of a batch two by two, where that gives the very bits of all at once.

The VAE has the largest tensors of a whole grid: the peak of its memory is made there. Its kernels
compute pictures one after another in any case, so two at a time are as quick; but some choose
another order of sums for another number of pictures (one at a time is 1/255 apart), and nothing
promises that two will do. So the first batch of each kind is decoded both ways and every bit is
compared; what was found is kept in the cache folder under all that it depends on.

    with PairedDecoding().used_by(pipeline, context=passport.digest):
        pipeline(["a red fox"] * 4)
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import torch

from seedgrid.diffusion.patch import replaced
from seedgrid.storage.cache import recall, remember_one

Decode = Callable[..., Any]

_CACHE: Final = "pairs"
_PAIR: Final = 2


class PairedDecoding:
    """What was found about decoding two by two, for each kind of batch."""

    @cached_property
    def _found(self) -> dict[str, bool]:
        return recall(_CACHE)

    @contextmanager
    def used_by(self, pipeline: Any, context: str) -> Iterator[None]:
        """Let a pipeline's VAE decode two by two in the block, where every bit was found equal."""
        vae = getattr(pipeline, "vae", None)
        if vae is None:
            yield
            return
        original = vae.decode

        def decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not _can_be_split(latents) or kwargs.get("return_dict", True):
                return original(latents, *args, **kwargs)
            return (self._decode(latents, lambda some: original(some, *args, **kwargs), context),)

        with replaced(vae, "decode", decode):
            yield

    def _decode(self, latents: torch.Tensor, decode: Decode, context: str) -> torch.Tensor:
        kind = f"{context}|{tuple(latents.shape)}|{latents.dtype}"
        key = hashlib.sha256(kind.encode()).hexdigest()
        if self._found.get(key) is True:
            return _two_by_two(latents, decode)
        pictures: torch.Tensor = decode(latents)[0]
        if key not in self._found:
            self._found[key] = torch.equal(_two_by_two(latents, decode), pictures)
            remember_one(_CACHE, key, self._found[key])
        return pictures


def _can_be_split(latents: torch.Tensor) -> bool:
    return latents.is_cpu and len(latents) > _PAIR and len(latents) % _PAIR == 0


def _two_by_two(latents: torch.Tensor, decode: Decode) -> torch.Tensor:
    """Decode into one tensor, so that no more than two pictures in the making are in memory."""
    first: torch.Tensor = decode(latents[:_PAIR])[0]
    pictures = first.new_empty(len(latents), *first.shape[1:])
    pictures[:_PAIR] = first
    del first
    for start in range(_PAIR, len(latents), _PAIR):
        pictures[start : start + _PAIR] = decode(latents[start : start + _PAIR])[0]
    return pictures
