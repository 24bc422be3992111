"""Poisoned neighbours: all rows of a batch but those of the tested picture get bad values.

A tensor of a batch of W pictures has W rows, or 2 W with guidance, and row r belongs to slot r % W.
Arithmetic that mixes rows, however little, carries NaN into the tested picture's rows. Code may
skip NaN, so there are other kinds of neighbours, too: huge ones, ordinary ones (the tested
picture's values in another order), and near ones (its values, slightly increased).
"""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import torch
from torch.utils._pytree import tree_map

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.libraries import replaced

Kind = Literal["nan", "huge", "ordinary", "near"]  # What a neighbour's rows are replaced by
Kinds = tuple[Kind, ...]
EXTREME: Final[Kinds] = ("nan", "huge")
REALISTIC: Final[Kinds] = ("near", "ordinary")

INPUTS: Final = "between the parts"  # Name of the check of the inputs of denoiser and decoder
_NOT_POISONED: Final = ("_ids", "_mask")  # Suffixes of arguments' names: positions and masks
_HUGE_POWER: Final = 0.4  # Power of a format's largest number, so that sums of squares are finite
_NEAR_FACTOR: Final = 1.0625


@dataclass(kw_only=True)
class PoisonedGrid:
    """Poisons the neighbours in one call of a pipeline, and reports the tested picture's rows.

    Raises RunCancelled if `watch.cancelled`, which is read at each call of a part of the pipeline.
    """

    watch: Watch
    report: Callable[[str, list[torch.Tensor]], None]  # Given a part's name, the tested rows
    width: int  # W, the number of pictures in the batch
    tested_slot: int  # The position of the tested picture in the batch, from 0
    kinds: Kinds  # Which the neighbours take in turn
    calls_per_kind: int = 1  # After so many calls of a part, each neighbour gets its next kind
    has_lists: bool  # Whether a batch may also be a list, with one tensor for each picture
    _calls: dict[str, int] = field(default_factory=dict, init=False)  # By part: last call, from 0

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Poison a pipeline's parts in the block; afterwards it is unchanged."""
        with ExitStack() as stack:
            for name, part in pipeline.components.items():
                if isinstance(part, torch.nn.Module):
                    self._watch_part(name, part, stack)
            yield

    def tested_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of the tested picture's rows (k, …) of a tensor (k W, …)."""
        return tensor[self.tested_slot :: self.width].clone()

    def _watch_part(self, name: str, part: Any, stack: ExitStack) -> None:
        if name == "vae":
            stack.enter_context(replaced(part, "decode", self._poisoned_decode(part.decode)))
        elif "text_encoder" in name:
            hook = partial(self._after_embedding, name)
            stack.callback(part.get_input_embeddings().register_forward_hook(hook).remove)
        elif "image" not in name and "safety" not in name:
            before, after = (
                partial(self._before_denoiser, name),
                partial(self._after_denoiser, name),
            )
            handle = part.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
            stack.callback(handle.remove)
            stack.callback(part.register_forward_hook(after, with_kwargs=True).remove)

    def _after_embedding(self, name: str, _module: Any, _args: Any, embeddings: Any) -> Any:
        """Poison the neighbours' token embeddings, in a text encoder's first layer."""
        return self._poisoned(embeddings, self._count_call(name))

    def _before_denoiser(self, name: str, _module: Any, args: Any, kwargs: Any) -> Any:
        """Report a denoiser's inputs, then poison them, except positions and masks."""
        row_counts = self._row_counts((args, kwargs))
        if not row_counts:
            return None
        call = self._count_call(name)
        self.report(INPUTS, self._tested_rows_in((args, kwargs), row_counts))
        poisoned_kwargs = {
            key: value if key.endswith(_NOT_POISONED) else self._poisoned(value, call, row_counts)
            for key, value in kwargs.items()
        }
        return self._poisoned(args, call, row_counts), poisoned_kwargs

    def _after_denoiser(self, name: str, _module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        """Report a denoiser's output, and inputs, which it may have changed; poison the output."""
        row_counts = self._row_counts((args, kwargs))
        if not row_counts:
            return None
        self.report(f"denoiser ({name})", self._tested_rows_in((output, args, kwargs), row_counts))
        return self._poisoned(output, self._calls[name])

    def _poisoned_decode(self, decode: Callable[..., Any]) -> Callable[..., Any]:
        def poisoned_decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._is_batch(latents):
                return decode(latents, *args, **kwargs)
            call = self._count_call("vae")
            self.report(INPUTS, [self.tested_rows(latents)])
            output = decode(self._poisoned(latents, call), *args, **kwargs)
            self.report("decoder", self._tested_rows_in(output, {len(latents)}))
            # Without NaN, which a safety checker cannot turn into bytes
            kinds = tuple(kind for kind in self.kinds if kind != "nan")
            return self._poisoned(output, call, kinds=kinds)

        return poisoned_decode

    def _is_batch(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor has equally many rows for each picture of the batch."""
        return tensor.ndim > 0 and tensor.shape[0] > 0 and tensor.shape[0] % self.width == 0

    def _row_counts(self, arguments: Any) -> set[int]:
        """Return the row counts that a batch's tensors may have; empty if this is no batch."""
        first = self._tensors_in(arguments)[0]
        return {first.shape[0], self.width} if self._is_batch(first) else set()

    def _tested_rows_in(self, value: Any, row_counts: set[int]) -> list[torch.Tensor]:
        """Return the tested picture's rows of those tensors that have one of these row counts."""
        return [
            self.tested_rows(tensor)
            for tensor in self._tensors_in(value)
            if tensor.is_floating_point() and self._is_batch(tensor) and len(tensor) in row_counts
        ]

    def _poisoned(
        self, value: Any, call: int, row_counts: Set[int] | None = None, kinds: Kinds = ()
    ) -> Any:
        """Return a nested value with poisoned neighbours, in the same memory layout.

        `call` is the number of this call of the part. Tensors whose number of rows is not in
        `row_counts` are returned as they are; those of whole numbers or one dimension are copied
        unchanged. `kinds` overrides the grid's own.
        """

        def poison(tensor: torch.Tensor) -> torch.Tensor:
            if not self._is_batch(tensor) or not (row_counts is None or len(tensor) in row_counts):
                return tensor
            result = tensor.clone()
            if tensor.is_floating_point() and tensor.ndim > 1:
                tested, all_kinds = self.tested_rows(tensor), kinds or self.kinds
                for distance in range(1, self.width):
                    slot = (self.tested_slot - distance) % self.width
                    kind = all_kinds[(distance - 1 + call // self.calls_per_kind) % len(all_kinds)]
                    result[slot :: self.width] = _neighbour_rows(tested, kind)
            return result

        return self._mapped(value, poison)

    def _count_call(self, name: str) -> int:
        """Return the number of this call of a part, from 0; raise RunCancelled if cancelled."""
        if self.watch.cancelled:
            raise RunCancelled("run_cancelled")
        self._calls[name] = self._calls.get(name, -1) + 1
        return self._calls[name]

    def _mapped(self, value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
        """Return a nested value with `change` applied to its tensors.

        With `has_lists` a list of one tensor for each picture is changed like one stacked tensor.
        """

        def is_batch_list(part: Any) -> bool:
            is_list = self.has_lists and isinstance(part, list) and len(part) % self.width == 0
            return is_list and bool(part) and all(isinstance(item, torch.Tensor) for item in part)

        def changed(part: Any) -> Any:
            if isinstance(part, list):
                starts = range(0, len(part), self.width)
                groups = [change(self._stacked(part[at : at + self.width])) for at in starts]
                return [row for rows in groups if rows is not None for row in rows.unbind(0)]
            return change(part) if isinstance(part, torch.Tensor) else part

        return tree_map(changed, value, is_leaf=is_batch_list)

    def _stacked(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Stack a tensor for each picture; the tested picture's replaces those of another shape."""
        tested = tensors[self.tested_slot]
        return torch.stack([each if each.shape == tested.shape else tested for each in tensors])

    def _tensors_in(self, value: Any) -> list[torch.Tensor]:
        tensors: list[torch.Tensor] = []
        self._mapped(value, tensors.append)
        return tensors


def _neighbour_rows(tested: torch.Tensor, kind: Kind) -> torch.Tensor:
    match kind:
        case "nan":
            return torch.full_like(tested, torch.nan)
        case "huge":
            largest: float = torch.finfo(tested.dtype).max
            return tested.flip(-1).mul(-(largest**_HUGE_POWER))
        case "ordinary":
            return tested.roll(1, -1)
        case "near":
            return tested.mul(_NEAR_FACTOR)
