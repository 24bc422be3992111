"""Quicker ways to the same bits: encoded texts are cached, pictures are decoded in pairs."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import Any, Final

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from seedgrid.diffusion.libraries import replaced
from seedgrid.storage.cache import recall, remember_one

MAX_KEPT_BYTES: Final = 64 * 1024**2

_ENCODERS: Final = ("text_encoder", "text_encoder_2", "text_encoder_3")
_CACHE: Final = "pairs"
_PAIR: Final = 2

_Row = tuple[list[torch.Tensor | None], TreeSpec]  # A row of each output tensor, and its form


class TextCache:
    """Rows of text encoders' outputs, up to `MAX_KEPT_BYTES`; the least recently used go first.

    At a fixed width a row of a text encoder's batch depends on its own words alone (the lock), so
    rows are cached one by one. A batch with one unknown row is encoded whole.
    """

    def __init__(self) -> None:
        self._rows: OrderedDict[str, _Row] = OrderedDict()
        self._num_bytes = 0

    @contextmanager
    def used_by(self, pipeline: Any, context: str) -> Iterator[None]:
        """Let a pipeline's text encoders look in the cache first."""
        with ExitStack() as stack:
            for name in _ENCODERS:
                encoder = getattr(pipeline, name, None)
                if encoder is not None:
                    recall_or_run = partial(self._recall, encoder.forward, f"{name}|{context}")
                    stack.enter_context(replaced(encoder, "forward", recall_or_run))
            yield

    def _recall(self, forward: Callable[..., Any], context: str, *args: Any, **kwargs: Any) -> Any:
        keys = _row_keys(context, args, kwargs)
        if keys and all(key in self._rows for key in keys):
            for key in keys:
                self._rows.move_to_end(key)
            rows, forms = zip(*(self._rows[key] for key in keys), strict=True)
            columns = zip(*rows, strict=True)
            parts = [None if part[0] is None else torch.stack(part) for part in columns]
            return tree_unflatten(parts, forms[0])
        output = forward(*args, **kwargs)
        parts, form = tree_flatten(output, is_leaf=_is_leaf)
        if all(_has_rows(part, len(keys)) for part in parts):
            for place, key in enumerate(keys):
                row = [None if part is None else part[place].clone() for part in parts]
                self._keep(key, (row, form))
        return output

    def _keep(self, key: str, row: _Row) -> None:
        if key in self._rows:
            return
        self._rows[key] = row
        self._num_bytes += _num_bytes(row)
        while self._num_bytes > MAX_KEPT_BYTES:
            self._num_bytes -= _num_bytes(self._rows.popitem(last=False)[1])


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | tuple)


def _has_rows(part: Any, width: int) -> bool:
    return part is None or (isinstance(part, torch.Tensor) and part.shape[:1] == (width,))


def _num_bytes(row: _Row) -> int:
    return sum(part.nbytes for part in row[0] if part is not None)


def _row_keys(context: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return one key for each row of the batch; none when the input has no rows of token ids."""
    named: list[tuple[object, Any]] = [*enumerate(args), *kwargs.items()]
    ids = next((value for _, value in named if isinstance(value, torch.Tensor)), None)
    if ids is None or ids.ndim != 2 or ids.is_floating_point():
        return []
    width = ids.shape[0]
    shared = hashlib.sha256(f"{context}|{width}".encode())
    rows = [hashlib.sha256() for _ in range(width)]
    for name, value in named:
        shared.update(f"|{name}:".encode())
        if not isinstance(value, torch.Tensor):
            shared.update(repr(value).encode())
            continue
        shared.update(f"{tuple(value.shape)}{value.dtype}".encode())
        if value.ndim == 0 or value.shape[0] != width:
            shared.update(_bytes(value))
            continue
        for row, part in zip(rows, value, strict=True):
            row.update(_bytes(part))
    return [f"{shared.hexdigest()}{row.hexdigest()}" for row in rows]


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()


class PairedDecoding:
    """Decoding two by two, for each kind of batch in which it gave equal bits.

    The VAE's kernels compute pictures one after another, so two at a time are as quick and take
    less memory; but some choose another order of sums for another number of pictures. So the first
    batch of each kind is decoded both ways and compared; the result is kept in the cache folder.
    """

    @cached_property
    def _is_equal(self) -> dict[str, bool]:
        return recall(_CACHE)

    @contextmanager
    def used_by(self, pipeline: Any, context: str) -> Iterator[None]:
        """Decode two by two in the block, where this gives equal bits."""
        vae = getattr(pipeline, "vae", None)
        if vae is None:
            yield
            return
        original = vae.decode

        def decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            can_be_split = latents.is_cpu and len(latents) > _PAIR and len(latents) % _PAIR == 0
            if not can_be_split or kwargs.get("return_dict", True):
                return original(latents, *args, **kwargs)
            return (self._decode(latents, lambda some: original(some, *args, **kwargs), context),)

        with replaced(vae, "decode", decode):
            yield

    def _decode(
        self, latents: torch.Tensor, decode: Callable[..., Any], context: str
    ) -> torch.Tensor:
        kind = f"{context}|{tuple(latents.shape)}|{latents.dtype}"
        key = hashlib.sha256(kind.encode()).hexdigest()
        if self._is_equal.get(key) is True:
            return _two_by_two(latents, decode)
        pictures: torch.Tensor = decode(latents)[0]
        if key not in self._is_equal:
            self._is_equal[key] = torch.equal(_two_by_two(latents, decode), pictures)
            remember_one(_CACHE, key, self._is_equal[key])
        return pictures


def _two_by_two(latents: torch.Tensor, decode: Callable[..., Any]) -> torch.Tensor:
    """Decode into one tensor, so that no more than two pictures in the making are in memory."""
    first: torch.Tensor = decode(latents[:_PAIR])[0]
    pictures = first.new_empty(len(latents), *first.shape[1:])
    pictures[:_PAIR] = first
    del first
    for start in range(_PAIR, len(latents), _PAIR):
        pictures[start : start + _PAIR] = decode(latents[start : start + _PAIR])[0]
    return pictures
