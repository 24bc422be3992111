"""Find what a LoRA's file holds and the pipeline that loaded it does not.

diffusers leaves out what it cannot read, layers that the model has not, and a few kinds of weights,
and says so in its log at most. Here its own conversion runs once more over tensors that remember
where they came from, and what comes out is looked for in the loaded parts. Knows no recipes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file

_BITS: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class _Traced(torch.Tensor):
    """A tensor that hands on to what is computed of it which tensors of a file it was."""

    sources: frozenset[str] = frozenset()

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        plain: Any = super().__torch_function__
        result = plain(func, types, args, kwargs or {})
        given = frozenset[str]().union(*(each.sources for each in _traced(args)))
        for each in _traced([result]):
            each.sources = each.sources | given
        return result


def lost_tensors(pipeline: Any, path: Path, adapter: str) -> tuple[str, ...]:
    """Return the names of a file's tensors that are not wholly in the pipeline that loaded it.

    Tensors of zeros change nothing and are not missed. `alpha` is one number, which the
    conversion turns into a factor.

    Args:
        pipeline: A diffusers pipeline with `load_lora_weights`, which loaded the file.
        path: A safetensors file.
        adapter: The name that the file was loaded by.
    """
    file = load_file(path)
    wanted = {name for name, tensor in file.items() if _is_weight(name, tensor)}
    loaded = list(_loaded(pipeline, adapter))
    dtypes = {tensor.dtype for tensor in loaded}
    present = Counter(_digest(tensor) for tensor in loaded)
    lost, arrived = set[str](), set[str]()
    for tensor in _converted(pipeline, file):
        digests = {_digest(tensor.to(dtype)) for dtype in dtypes}
        found = next((each for each in digests if present[each]), None)
        if found is not None:
            present[found] -= 1
            arrived |= tensor.sources
        elif tensor.any():
            lost |= tensor.sources
    return tuple(sorted(wanted - (arrived - lost)))


def _converted(pipeline: Any, file: Mapping[str, torch.Tensor]) -> list[_Traced]:
    """Return what diffusers makes of a file, each tensor with those that it was made of."""
    traced = {name: tensor.as_subclass(_Traced) for name, tensor in file.items()}
    for name, tensor in traced.items():
        tensor.sources = frozenset([name])
    unet = getattr(pipeline, "unet", None)
    config = unet.config if unet is not None else None  # As the loader of SDXL asks for it.
    converted = pipeline.lora_state_dict(traced, unet_config=config)
    tensors = converted[0] if isinstance(converted, tuple) else converted
    return list(tensors.values())


def _loaded(pipeline: Any, adapter: str) -> Iterator[torch.Tensor]:
    for part in pipeline.components.values():
        if isinstance(part, torch.nn.Module):
            for name, parameter in part.named_parameters():
                if adapter in name.split("."):
                    yield parameter.detach()


def _digest(tensor: torch.Tensor) -> tuple[int, int]:
    """Digest the numbers of a tensor; diffusers fills up with zeros and changes shapes.

    How many there are and the sum of their bits: a third of the time of a real digest.
    """
    plain = tensor.as_subclass(torch.Tensor).contiguous()
    bits = plain.view(_BITS[plain.element_size()])
    return int(bits.count_nonzero()), int(bits.sum(dtype=torch.int64))


def _is_weight(name: str, tensor: torch.Tensor) -> bool:
    return not name.endswith("alpha") and bool(tensor.any())


def _traced(values: Iterable[Any]) -> Iterator[_Traced]:
    for value in values:
        if isinstance(value, _Traced):
            yield value
        elif isinstance(value, list | tuple):
            yield from _traced(value)
