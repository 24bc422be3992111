"""Upscaler networks: the Compact one in plain torch, and a guard for those of strangers.

The bundled model's own network is a Compact one (SRVGGNetCompact), and works in the plain
installation: any other kind is spandrel's to know (`upscaling.py`), to which this is equal bit for
bit. What a stranger's network asks for follows from the shapes in its file: one of a megabyte may
want tens of gigabytes, which Linux promises, and ends the process when they are written to.

Source: X. Wang et al. 2021, "Real-ESRGAN", arXiv:2107.10833; github.com/xinntao/Real-ESRGAN.

    with FittingIntoMemory():
        Compact(load_file("4x-foxes.safetensors"), scale=4)(image)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psutil
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


@dataclass(frozen=True, eq=False)
class Compact:
    """Convolutions at the size of what is enlarged; the last gives the pixels in between.

    Attributes:
        weights: float32, by name: `body.0.weight`, …, as `models.upscalers` knows them.
        scale: How many times as wide and high the picture becomes.
    """

    weights: Mapping[str, torch.Tensor]
    scale: int

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        """Return pictures `(N, 3, H * scale, W * scale)` for `(N, 3, H, W)`, both 0 … 1."""
        result = image
        for layer in range(sum(name.endswith(".weight") for name in self.weights)):
            weight = self.weights[f"body.{layer}.weight"]
            if weight.ndim == 1:
                result = functional.prelu(result, weight)
            else:
                bias = self.weights[f"body.{layer}.bias"]
                result = functional.conv2d(result, weight, bias, padding=1)
        result = functional.pixel_shuffle(result, self.scale)
        return result + functional.interpolate(image, scale_factor=self.scale, mode="nearest")


_SHARE: Final = 0.5
"""Of the free memory, for one result."""


class FittingIntoMemory(TorchDispatchMode):
    """Works out how large each result will be by torch's own shapes; changes no bit."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self._most = _SHARE * psutil.virtual_memory().available

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Compute an operation, or refuse it.

        Raises:
            MemoryError: Its result would take more than half of what is free.
        """
        given = dict(kwargs or {})
        wanted = _result_bytes(func, args, given)
        if wanted > self._most:
            raise MemoryError(f"out of memory: one result would take {wanted / 1e9:.1f} GB")
        return func(*args, **given)


def _result_bytes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return how many bytes a result takes; 0 where its shape depends on its values."""
    given = tree_map_only(torch.Tensor, _shape_of, (args, kwargs))
    if "device" in given[1]:
        given[1]["device"] = torch.device("meta")
    try:
        result = func(*given[0], **given[1])
    except Exception:  # noqa: BLE001 (whatever is wrong, the operation itself says so)
        return 0
    found = result if isinstance(result, tuple | list) else (result,)
    return sum(_storage_bytes(each) for each in found if isinstance(each, torch.Tensor))


def _shape_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _storage_bytes(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())
