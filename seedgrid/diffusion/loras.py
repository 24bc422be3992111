"""LoRAs: put into a pipeline that was just loaded, by diffusers and peft, and looked for in it.

A loaded pipeline keeps its LoRAs: those of another recipe have a pipeline of their own. What does
not fit, wholly or in part, is refused: diffusers leaves out what it cannot read, layers that the
model has not, and a few kinds of weights, and says so in its log at most. So its own conversion
runs once more over tensors that remember where they came from, and what comes out is looked for in
the loaded parts. Knows nothing of batches.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.foreign_errors import foreign_errors


def add_loras(pipeline: Any, recipe: Recipe, paths: Sequence[Path]) -> None:
    """Load a recipe's LoRAs into a pipeline, in order.

    Raises:
        InputError: `lora_family`: this kind of model takes none; `lora_misfit`: this one does not
            fit; `lora_partly`: diffusers would leave a part of it out; `lora_peft`: the package
            that it wants for them is not there.
    """
    if not recipe.loras:
        return
    _check_peft()
    if not hasattr(pipeline, "load_lora_weights"):
        raise InputError("lora_family", field="prompt", value=recipe.model.id)
    for place, (lora, path) in enumerate(zip(recipe.loras, paths, strict=True)):
        misfit = InputError("lora_misfit", field="prompt", value=lora.id)
        with foreign_errors(lambda *_, misfit=misfit: misfit), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peft tells of each LoRA after the first.
            pipeline.load_lora_weights(
                str(path.parent),
                weight_name=path.name,
                adapter_name=_adapter(place),
                use_safetensors=True,
                local_files_only=True,
            )
        layers = (name for names in pipeline.get_list_adapters().values() for name in names)
        if _adapter(place) not in layers:
            raise misfit
        lost = lost_tensors(pipeline, path, _adapter(place))
        if lost:
            part = "".join(filter(str.isprintable, lost[0]))[:120]
            data = {"value": lora.id, "count": len(lost), "part": part}
            raise InputError("lora_partly", field="prompt", **data)


def scale_loras(pipeline: Any, recipe: Recipe) -> None:
    """Set the scales of a pipeline's LoRAs to those of a recipe."""
    if recipe.loras:
        names = [_adapter(place) for place in range(len(recipe.loras))]
        pipeline.set_adapters(names, [lora.scale for lora in recipe.loras])


def _adapter(place: int) -> str:
    """Return what peft calls the LoRA at a place; a file's own name may be no name to it."""
    return f"lora_{place}"


def _check_peft() -> None:
    from diffusers.utils import is_peft_available

    if not is_peft_available():
        raise InputError("lora_peft", field="prompt")


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
