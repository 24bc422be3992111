"""Tell how much of a model is there while it is loaded, and stop between two of its weights.

Gigabytes take longer to load than a picture to paint, and diffusers tells nobody how far it is. Its
own parts are counted weight by weight, those of transformers as a whole. Changes no bit: who
listens is called between two weights, with nothing of them in hand.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch

from seedgrid.diffusion.backend import LoadWatch
from seedgrid.diffusion.patch import replaced

LEAST_BYTES: Final = 50_000_000
"""It is told again when at least so much has come, and a hundredth of all."""


@contextmanager
def reported_loading(
    num_parameters: int, dtype: torch.dtype, watch: LoadWatch | None
) -> Iterator[None]:
    """Tell `watch` how much of a pipeline's weights is there, while they are loaded in the block.

    A release of diffusers that loads in another way is told of in larger pieces, or not at all.

    Raises:
        RunCancelled: What `watch` raises comes out of the loading.
    """
    if watch is None:
        yield
        return
    from diffusers.models import model_loading_utils
    from diffusers.pipelines import pipeline_utils

    count = _Count(num_parameters, dtype.itemsize, watch)
    with ExitStack() as stack:
        for owner, name, counting in (
            (model_loading_utils, "set_module_tensor_to_device", _counting_weights),
            (pipeline_utils, "load_sub_model", _counting_parts),
        ):
            original = getattr(owner, name, None)
            if original is not None:
                stack.enter_context(replaced(owner, name, counting(original, count)))
        yield


class _Count:
    """How many weights are there, and what of it was told."""

    def __init__(self, total: int, itemsize: int, watch: LoadWatch) -> None:
        self.number = 0
        self._told = 0
        self._total = total
        self._itemsize = itemsize
        self._watch = watch
        self._step = max(total // 100, LEAST_BYTES // itemsize)

    def reach(self, number: int) -> None:
        """So many are there now."""
        self.number = min(number, self._total)
        if self.number - self._told >= self._step:
            self._told = self.number
            self._watch(self.number * self._itemsize, self._total * self._itemsize)


def _counting_weights(original: Any, count: _Count) -> Any:
    def set_module_tensor_to_device(*args: Any, **kwargs: Any) -> Any:
        value = kwargs.get("value")
        if isinstance(value, torch.Tensor):
            count.reach(count.number + value.numel())
        return original(*args, **kwargs)

    return set_module_tensor_to_device


def _counting_parts(original: Any, count: _Count) -> Any:
    def load_sub_model(*args: Any, **kwargs: Any) -> Any:
        before = count.number
        part = original(*args, **kwargs)
        if isinstance(part, torch.nn.Module):
            count.reach(before + sum(weight.numel() for weight in part.parameters()))
        return part

    return load_sub_model
