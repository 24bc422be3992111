"""Ways: what was computed on the way from noise to a picture, recorded for its children.

A scheduler is called once or twice a step. In a held step its input and its result are replaced by
the parent's; while all rows are held, the denoiser is not run. Outside a region the latents after
each call are the parent's. At a fixed width a row's numbers are the same in every batch (the lock),
so the parent's neighbours do not matter. A way that is lost is computed again, with the same bits.
"""

import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe, in_batches
from seedgrid.core.variables import megabytes
from seedgrid.diffusion.libraries import replaced
from seedgrid.diffusion.noise import fresh_generators
from seedgrid.storage import starts

_SPREAD_STRENGTH: Final = 0.5  # How far words move, as a share of the farthest one's distance
_SPREAD_STREAM: Final = 0x53505244  # Xor-ed with a seed, so that the noise is not the picture's
# Names of a denoiser's arguments: the words (a tensor, or a list with a tensor a row); the latents
_WORDS: Final = ("encoder_hidden_states", "cap_feats", "text_bth")
_SAMPLES: Final = ("sample", "hidden_states", "x")


class Halted(Exception):  # noqa: N818 (a signal, not an error)
    """All steps that are needed of a parent are recorded."""


@dataclass(kw_only=True)
class Way:
    """What was computed of one picture, on the CPU."""

    outputs: list[torch.Tensor] = field(default_factory=list)  # The scheduler's input at each call
    latents: list[torch.Tensor] = field(default_factory=list)  # Its result, (C, h, w), (tokens, C)
    form: Any = None  # The denoiser's output, with one row of zeros in place of each tensor
    pixels: Pixels | None = None  # The picture; None if it was not painted to its end

    @property
    def num_bytes(self) -> int:
        """How much memory it takes."""
        pixels = 0 if self.pixels is None else self.pixels.nbytes
        return pixels + sum(each.nbytes for each in (*self.outputs, *self.latents))

    def serves(self, recipe: Recipe, order: int) -> bool:
        """Tell whether a recipe can follow it; a region needs all of it."""
        return self.pixels is not None or (
            not recipe.mask and len(self.outputs) >= recipe.held_steps * order
        )


@dataclass(frozen=True, kw_only=True)
class Guide:
    """The parents' ways that a call of a pipeline follows, and what the call records."""

    ways: Mapping[str, Way] = field(default_factory=dict)  # By the ids of the parents' recipes
    halt_steps: int = 0  # Stop after so many steps, without pictures; 0 paints all
    max_bytes: float = 0  # The most memory for the recorded ways; if they need more, none is kept


class Steering:
    """Steers one call of a pipeline, and records it.

    `cells` are the recipes of the rows, of which the first `num_pictures` are pictures.
    """

    last: torch.Tensor  # The latents after the last call of the scheduler

    def __init__(self, cells: Sequence[Recipe], guide: Guide, *, num_pictures: int) -> None:
        self.order = 1  # How many times a step the scheduler is called
        self._num_pictures = num_pictures
        self._outputs: list[torch.Tensor] = []  # of each call, (num_pictures, …)
        self._latents: list[torch.Tensor] = []
        self._form: Any = None
        self._cells = cells
        self._guide = guide
        self._ways = [guide.ways[cell.parent.id] if cell.parent else Way() for cell in cells]
        self._call = 0  # How often the scheduler was called
        self._regions: dict[int, torch.Tensor] = {}

    @property
    def ways(self) -> list[Way]:
        """The ways of the pictures; empty ones if they are not kept."""
        outputs = [each.cpu() for each in self._outputs]
        latents = [each.cpu() for each in self._latents]
        return [
            Way(
                outputs=[each[row] for each in outputs],
                latents=[each[row] for each in latents],
                form=self._form or self._ways[row].form,
            )
            for row in range(self._num_pictures)
        ]

    def steer_input(self, output: torch.Tensor) -> torch.Tensor:
        """Return the scheduler's input, with the parent's in held rows."""
        held = [row for row in range(len(self._cells)) if self._is_held(row)]
        if held:
            output = output.clone()
        for row in held:
            output[row] = self._ways[row].outputs[self._call].to(output.device)
        self._record(self._outputs, output)
        return output

    def steer_result(self, result: Any) -> Any:
        """Return the result, the parent's in held rows and around a region; may raise Halted."""
        is_tuple = isinstance(result, tuple)
        latents = result[0] if is_tuple else result.prev_sample
        steered = self.last = self._steered(latents)
        self._record(self._latents, steered)
        self._call += 1
        if self._call == self._guide.halt_steps * self.order:
            raise Halted
        if steered is latents:
            return result
        if is_tuple:
            return (steered, *result[1:])
        result.prev_sample = steered
        return result

    @contextmanager
    def used_by(self, pipeline: Any, denoiser: str) -> Iterator[None]:
        """Skip a pipeline's denoiser while all rows are held; move the words of spread rows."""
        module = getattr(pipeline, denoiser)
        original = module.forward

        @wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            if all(self._is_held(row) for row in range(len(self._cells))):
                sample = next((kwargs[name] for name in _SAMPLES if name in kwargs), None)
                return _blank(self._ways[0].form, args[0] if sample is None else sample)
            if rows := [row for row in range(len(self._cells)) if self._is_spread(row)]:
                args, kwargs = _with_words(original, args, kwargs, partial(self._spread, rows))
            output = original(*args, **kwargs)
            self._form = self._form or _form(output)
            return output

        with replaced(module, "forward", forward):
            yield

    def _record(self, kept: list[torch.Tensor], batch: torch.Tensor) -> None:
        """Record the pictures' rows of a batch, or drop all once they take too much memory."""
        own = batch[: self._num_pictures].detach()
        if 2 * (self._call + 1) * own.nbytes <= self._guide.max_bytes:
            kept.append(own.clone())
        else:
            self._outputs.clear()
            self._latents.clear()

    def _is_held(self, row: int) -> bool:
        return self._call < self._cells[row].held_steps * self.order

    def _steered(self, latents: torch.Tensor) -> torch.Tensor:
        rows = [r for r, cell in enumerate(self._cells) if self._is_held(r) or cell.mask]
        if not rows:
            return latents
        steered = latents.clone()  # The same memory layout, and so the same kernels
        for row in rows:
            parents = self._ways[row].latents[self._call].to(latents.device)
            if self._is_held(row):
                steered[row] = parents
            else:
                steered[row] = torch.where(self._region(row, parents), latents[row], parents)
        return steered

    def _region(self, row: int, latents: torch.Tensor) -> torch.Tensor:
        """Return which latents of a row are in its region, as a tensor that broadcasts."""
        if row not in self._regions:
            cell = self._cells[row]
            inside = starts.inside(cell.mask, cell.width, cell.height)
            if latents.ndim == 2:  # Packed: tokens in rows, from left to right
                num_rows = round((len(latents) * cell.height / cell.width) ** 0.5)
                cells = starts.in_cells(inside, num_rows, len(latents) // num_rows).reshape(-1, 1)
            else:
                cells = starts.in_cells(inside, *latents.shape[-2:])
            self._regions[row] = torch.from_numpy(cells).to(latents.device)
        return self._regions[row]

    def _is_spread(self, row: int) -> bool:
        cell = self._cells[row]
        steps = max(1, round(cell.spread * cell.num_inference_steps))
        return cell.spread > 0 and self._call < steps * self.order

    def _spread(self, rows: Sequence[int], words: Any) -> Any:
        """Move the words of rows, negative ones included, by seeded noise.

        All words of a picture are moved by one vector, a random mixture of their differences from
        their mean: noise of each word's own would cancel out, and other directions mean nothing to
        a denoiser. The first word is no part of the mixture, as language models give it values a
        thousand times as large.
        """
        spread = words.clone() if isinstance(words, torch.Tensor) else list(words)
        for row in rows:
            for place in range(row, len(words), len(self._cells)):
                own = words[place]
                (generator,) = fresh_generators([self._cells[row].seed ^ _SPREAD_STREAM])
                values = own.float().flatten(1)  # (words, width)
                others = values[min(1, len(values) - 1) :]
                differences = others - others.mean(0)
                shares = torch.randn(1, len(differences), generator=generator).to(own.device)
                mixture = shares @ differences
                farthest = differences.square().sum(1).sqrt().amax()
                length = mixture.square().sum().sqrt().clamp_min(1e-6)
                moved = values + mixture * (_SPREAD_STRENGTH * farthest / length)
                spread[place] = moved.reshape(own.shape).to(own.dtype)
        return spread


def _with_words(
    forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], change: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a denoiser's arguments with its words changed."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    name = next((name for name in _WORDS if bound.arguments.get(name) is not None), None)
    if name is None:
        raise InputError("spread_unsupported", field="spread")
    bound.arguments[name] = change(bound.arguments[name])
    return bound.args, bound.kwargs


def _form(output: Any) -> Any:
    """Return a denoiser's output with one row of zeros in place of each tensor, on the CPU."""

    def row(part: Any) -> Any:
        if isinstance(part, list):  # one tensor a row
            return [torch.zeros_like(part[0], device="cpu")]
        return torch.zeros_like(part[:1], device="cpu")

    return tree_map(row, output, is_leaf=lambda part: isinstance(part, list))


def _blank(form: Any, sample: Sequence[torch.Tensor] | torch.Tensor) -> Any:
    """Return an output of this form, of zeros that nothing reads, with as many rows as `sample`."""

    def rows(part: Any) -> Any:
        if isinstance(part, list):
            return [part[0].to(sample[0].device) for _ in sample]
        return torch.cat([part.to(sample[0].device)] * len(sample))

    return tree_map(rows, form, is_leaf=lambda part: isinstance(part, list))


class WayMemory:
    """Ways by recipe and passport, the least recently used first, within `SEEDGRID_WAY_MB`."""

    def __init__(self) -> None:
        self._ways: OrderedDict[str, Way] = OrderedDict()
        self._num_bytes = 0

    def get(self, key: str) -> Way | None:
        """Return a way that is still cached."""
        if key in self._ways:
            self._ways.move_to_end(key)
        return self._ways.get(key)

    def keep(self, key: str, way: Way) -> None:
        """Keep a way, and drop the least recently used ones."""
        if key in self._ways:
            self._num_bytes -= self._ways.pop(key).num_bytes
        self._ways[key] = way
        self._num_bytes += way.num_bytes
        while self._ways and self._num_bytes > max_bytes():
            self._num_bytes -= self._ways.popitem(last=False)[1].num_bytes


def max_bytes() -> float:
    """Return how much memory ways may take."""
    return megabytes("SEEDGRID_WAY_MB") or math.inf


def missing_parents(
    recipes: Sequence[Recipe], find: Callable[[Recipe], Way | None], order: int
) -> tuple[dict[str, Way], list[tuple[list[Recipe], int]]]:
    """Return the known ways by parents' ids, and batches to paint first, each with its steps.

    0 steps stand for all. `find` returns a kept way; a scheduler is called `order` times a step.
    """
    known: dict[str, Way] = {}
    needed: dict[str, tuple[Recipe, list[Recipe]]] = {}
    for recipe in recipes:
        if recipe.parent:
            needed.setdefault(recipe.parent.id, (recipe.parent, []))[1].append(recipe)
    for parent, children in needed.values():
        way = find(parent)
        if way is not None and all(way.serves(child, order) for child in children):
            known[parent.id] = way
    missing = [parent for parent, _ in needed.values() if parent.id not in known]
    batches: list[tuple[list[Recipe], int]] = []
    for batch in in_batches(missing, lambda parent: parent):
        children = [child for parent in batch for child in needed[parent.id][1]]
        is_whole = any(child.mask for child in children)
        batches.append((batch, 0 if is_whole else max(child.held_steps for child in children)))
    return known, batches
