"""Poisoned neighbours: all rows of a batch but the own picture's are replaced by bad values.

A tensor of a batch of W cells has W rows, or 2 W with guidance, and row r belongs to cell r % W.
Arithmetic that mixes rows, however little, carries NaN into the own ones. Code may skip NaN, so
there are other neighbours, too: huge ones, ordinary ones (the own values in another order), and
near ones (the own values, a little greater).
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

Kind = Literal["nan", "huge", "ordinary", "near"]
Kinds = tuple[Kind, ...]
WILD: Final[Kinds] = ("nan", "huge")
MILD: Final[Kinds] = ("near", "ordinary")

BETWEEN: Final = "between the parts"
_NOT_ROWS: Final = ("_ids", "_mask")  # Ends of arguments' names: positions, masks
_HUGE_POWER: Final = 0.4  # Power of a format's largest number: sums of its squares are finite
_NEAR_FACTOR: Final = 1.0625


@dataclass(kw_only=True)
class PoisonedGrid:
    """Poisons the neighbours in one call of a pipeline, and passes the own rows to `see`, in order.

    `watch` may stop it before each call of a part.
    """

    watch: Watch
    see: Callable[[str, list[torch.Tensor]], None]
    width: int  # W, the number of cells
    own: int  # The cell of the own picture, from 0
    kinds: Kinds  # Of the neighbours, in turn
    pace: int = 1  # After so many calls of a part each neighbour changes to the next kind
    has_lists: bool  # Whether a list of tensors is a batch, too: one tensor a cell
    _turns: dict[str, int] = field(default_factory=dict, init=False)  # Calls of each part, from 0

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Poison a pipeline's parts in the block; afterwards it is unchanged."""
        with ExitStack() as stack:
            for name, part in pipeline.components.items():
                if isinstance(part, torch.nn.Module):
                    self._watch_part(name, part, stack)
            yield

    def own_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the own rows (k, …) of a tensor (k W, …), a copy."""
        return tensor[self.own :: self.width].clone()

    def _watch_part(self, name: str, part: Any, stack: ExitStack) -> None:
        if name == "vae":
            stack.enter_context(replaced(part, "decode", self._decoding(part.decode)))
        elif "text_encoder" in name:
            embeddings = part.get_input_embeddings()
            stack.callback(embeddings.register_forward_hook(partial(self._read, name)).remove)
        elif "image" not in name and "safety" not in name:
            enter, leave = partial(self._enter, name), partial(self._leave, name)
            hook = part.register_forward_pre_hook(enter, prepend=True, with_kwargs=True)
            stack.callback(hook.remove)
            stack.callback(part.register_forward_hook(leave, with_kwargs=True).remove)

    def _read(self, name: str, _module: Any, _args: Any, embeddings: Any) -> Any:
        """Poison the neighbours' token embeddings, in a text encoder's first layer."""
        return self._poisoned(embeddings, self._turn(name))

    def _enter(self, name: str, _module: Any, args: Any, kwargs: Any) -> Any:
        """Poison a denoiser's inputs, except positions and masks."""
        sizes = self._sizes((args, kwargs))
        if not sizes:
            return None
        turn = self._turn(name)
        self.see(BETWEEN, self._own_of((args, kwargs), sizes))
        named = {
            key: value if key.endswith(_NOT_ROWS) else self._poisoned(value, turn, sizes)
            for key, value in kwargs.items()
        }
        return self._poisoned(args, turn, sizes), named

    def _leave(self, name: str, _module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        """Pass on a denoiser's output, and its inputs, which it may have changed."""
        sizes = self._sizes((args, kwargs))
        if not sizes:
            return None
        self.see(f"denoiser ({name})", self._own_of((output, args, kwargs), sizes))
        return self._poisoned(output, self._turns[name])

    def _decoding(self, decode: Callable[..., Any]) -> Callable[..., Any]:
        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._is_batch(latents):
                return decode(latents, *args, **kwargs)
            turn = self._turn("vae")
            self.see(BETWEEN, [self.own_rows(latents)])
            output = decode(self._poisoned(latents, turn), *args, **kwargs)
            self.see("decoder", self._own_of(output, {len(latents)}))
            # Without NaN, which a safety checker cannot turn into bytes
            kinds = tuple(kind for kind in self.kinds if kind != "nan")
            return self._poisoned(output, turn, kinds=kinds)

        return watched

    def _is_batch(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor has rows for all cells."""
        return tensor.ndim > 0 and tensor.shape[0] > 0 and tensor.shape[0] % self.width == 0

    def _sizes(self, arguments: Any) -> set[int]:
        """Return how many rows the tensors of a call may have; empty if it is no batch's call."""
        rows = self._tensors_in(arguments)[0]
        return {rows.shape[0], self.width} if self._is_batch(rows) else set()

    def _own_of(self, value: Any, sizes: set[int]) -> list[torch.Tensor]:
        """Return the own rows of a nested value's tensors of these sizes."""
        return [
            self.own_rows(tensor)
            for tensor in self._tensors_in(value)
            if tensor.is_floating_point() and self._is_batch(tensor) and len(tensor) in sizes
        ]

    def _poisoned(
        self, value: Any, turn: int, sizes: Set[int] | None = None, kinds: Kinds = ()
    ) -> Any:
        """Return a nested value with poisoned neighbours, in the same memory layout.

        Integers and one-dimensional tensors are only copied. `turn` counts the calls of a part; of
        other `sizes` nothing is changed; `kinds` replace the own ones.
        """

        def poison(tensor: torch.Tensor) -> torch.Tensor:
            if not self._is_batch(tensor) or not (sizes is None or len(tensor) in sizes):
                return tensor
            result = tensor.clone()
            if tensor.is_floating_point() and tensor.ndim > 1:
                own, all_kinds = self.own_rows(tensor), kinds or self.kinds
                for distance in range(1, self.width):
                    neighbour = (self.own - distance) % self.width
                    kind = all_kinds[(distance - 1 + turn // self.pace) % len(all_kinds)]
                    result[neighbour :: self.width] = _bad(own, kind)
            return result

        return self._mapped(value, poison)

    def _turn(self, name: str) -> int:
        """Count the calls of a part, and stop if the watch says so."""
        if self.watch.cancelled:
            raise RunCancelled("run_cancelled")
        self._turns[name] = self._turns.get(name, -1) + 1
        return self._turns[name]

    def _mapped(self, value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
        """Return a nested value with its tensors, and its lists of cells if there are, changed."""

        def is_cells(part: Any) -> bool:
            """Tell whether a part is a list with a tensor for each cell, once or several times."""
            is_list = self.has_lists and isinstance(part, list) and len(part) % self.width == 0
            return is_list and bool(part) and all(isinstance(item, torch.Tensor) for item in part)

        def changed(part: Any) -> Any:
            if isinstance(part, list):
                starts = range(0, len(part), self.width)
                groups = [change(self._stacked(part[at : at + self.width])) for at in starts]
                return [row for rows in groups if rows is not None for row in rows.unbind(0)]
            return change(part) if isinstance(part, torch.Tensor) else part

        return tree_map(changed, value, is_leaf=is_cells)

    def _stacked(self, cells: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return one tensor a cell as rows; the own one replaces neighbours of another shape."""
        own = cells[self.own]
        return torch.stack([each if each.shape == own.shape else own for each in cells])

    def _tensors_in(self, value: Any) -> list[torch.Tensor]:
        tensors: list[torch.Tensor] = []
        self._mapped(value, tensors.append)
        return tensors


def _bad(own: torch.Tensor, kind: Kind) -> torch.Tensor:
    match kind:
        case "nan":
            return torch.full_like(own, torch.nan)
        case "huge":
            largest: float = torch.finfo(own.dtype).max
            return own.flip(-1).mul(-(largest**_HUGE_POWER))
        case "ordinary":
            return own.roll(1, -1)
        case "near":
            return own.mul(_NEAR_FACTOR)
