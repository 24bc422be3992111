"""Ways: what was computed on the way from noise to a picture, kept and given back.

A scheduler is called once or twice a step. For a held step it is given the output that it was
given for the parent, and its result is the parent's; while all rows of a batch are held, the
denoiser is not run. Outside a region the latents after each call are the parent's. At a fixed width
a row's numbers are the same in every batch (the lock), so it does not matter beside whom the parent
was painted. Knows nothing of words and of how a family is called, but for their embeddings' name.

    steering = Steering(cells, Guide(ways={parent.id: way}), num_pictures=4)
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final

import torch

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.generators import fresh_generators
from seedgrid.diffusion.patch import replaced
from seedgrid.storage import regions

_SPREAD_STRENGTH: Final = 0.5
"""How far words are moved, as a share of the distance of the farthest one from their mean."""
_SPREAD_STREAM: Final = 0x53505244
"""A seed's noise on the words is that of this other seed, xor-ed, so that it is no part of its
first noise."""
_WORDS: Final = ("encoder_hidden_states", "cap_feats", "text_bth")
"""What a denoiser calls its words: a tensor, or a list with a tensor a row."""
_SAMPLES: Final = ("sample", "hidden_states", "x")


class Halted(Exception):  # noqa: N818 (a signal, not an error)
    """All calls that were wanted of a parent are recorded."""


@dataclass(kw_only=True)
class Way:
    """What was computed of one picture, on the CPU.

    Attributes:
        outputs: What the scheduler was given at each call, a row of the denoiser's output.
        latents: What came out of each call, (C, h, w), or (tokens, C).
        form: What the denoiser's output looks like (`_form`).
        pixels: The picture; None where it was not painted to its end.
    """

    outputs: list[torch.Tensor] = field(default_factory=list)
    latents: list[torch.Tensor] = field(default_factory=list)
    form: Any = None
    pixels: Pixels | None = None

    @property
    def num_bytes(self) -> int:
        """How much memory it takes."""
        tensors = sum(each.numel() * each.element_size() for each in (*self.outputs, *self.latents))
        return tensors + (self.pixels.nbytes if self.pixels is not None else 0)

    def serves(self, recipe: Recipe, order: int) -> bool:
        """Tell whether a recipe can follow it: to its end for a region."""
        return self.pixels is not None or (
            not recipe.mask and len(self.outputs) >= recipe.held_steps * order
        )


@dataclass(frozen=True, kw_only=True)
class Guide:
    """What a call is to follow, and what is wanted of it.

    Attributes:
        ways: Of the parents, by the ids of their recipes.
        halt_steps: Stop after so many steps, without pictures; 0 is not to stop.
        max_bytes: How much memory the ways of its own pictures may take; what would take more is
            not kept at all.
    """

    ways: Mapping[str, Way] = field(default_factory=dict)
    halt_steps: int = 0
    max_bytes: float = 0


class Steering:
    """Steers one call of a pipeline, and records it.

    Args:
        cells: What sits in each row.
        guide: What is followed.
        num_pictures: How many rows are wanted; the rest is padding.

    Attributes:
        order: Of the scheduler: how often it is called a step.
        last: The latents after the last call.
    """

    last: torch.Tensor

    def __init__(self, cells: Sequence[Recipe], guide: Guide, *, num_pictures: int) -> None:
        self.order = 1
        self._num_pictures = num_pictures
        self._outputs: list[torch.Tensor] = []  # of each call, (num_pictures, …)
        self._latents: list[torch.Tensor] = []
        self._form: Any = None
        self._cells = cells
        self._guide = guide
        self._ways = [guide.ways[cell.parent.id] if cell.parent else Way() for cell in cells]
        self._call = 0
        self._regions: dict[int, torch.Tensor] = {}

    @property
    def ways(self) -> list[Way]:
        """The ways of the pictures that are wanted; empty ones where they are not kept."""
        outputs, latents = (
            [each.cpu() for each in some] for some in (self._outputs, self._latents)
        )
        return [
            Way(
                outputs=[each[row] for each in outputs],
                latents=[each[row] for each in latents],
                form=self._form or self._ways[row].form,
            )
            for row in range(self._num_pictures)
        ]

    def given(self, output: torch.Tensor) -> torch.Tensor:
        """Return what the scheduler is given: of held rows what it was given for the parent."""
        held = [row for row in range(len(self._cells)) if self._is_held(row)]
        if held:
            output = output.clone()
        for row in held:
            output[row] = self._ways[row].outputs[self._call].to(output.device)
        self._record(self._outputs, output)
        return output

    def result(self, result: Any) -> Any:
        """Return what the scheduler gives: the parent's in held rows and around a region.

        Raises:
            Halted: What was wanted is recorded.
        """
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
        """Leave a pipeline's denoiser out where nobody needs its output; spread its words."""
        module = getattr(pipeline, denoiser)
        original = module.forward

        @wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            if all(self._is_held(row) for row in range(len(self._cells))):
                sample = next((kwargs[name] for name in _SAMPLES if name in kwargs), None)
                return _blank(self._ways[0].form, args[0] if sample is None else sample)
            if rows := self._spread_rows():
                args, kwargs = _with_words(original, args, kwargs, partial(self._spread, rows))
            output = original(*args, **kwargs)
            self._form = self._form or _form(output)
            return output

        with replaced(module, "forward", forward):
            yield

    def _record(self, kept: list[torch.Tensor], batch: torch.Tensor) -> None:
        """Keep the wanted rows of a batch, unless they have become too much: then none at all."""
        own = batch[: self._num_pictures].detach()
        num_bytes = 2 * (self._call + 1) * own.numel() * own.element_size()
        if num_bytes <= self._guide.max_bytes:
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
        steered = latents.clone()  # Laid out in memory as it was: that decides which kernels run.
        for row in rows:
            parents = self._ways[row].latents[self._call].to(latents.device)
            if self._is_held(row):
                steered[row] = parents
            else:
                steered[row] = torch.where(self._region(row, parents), latents[row], parents)
        return steered

    def _region(self, row: int, latents: torch.Tensor) -> torch.Tensor:
        """Return where a row of latents belongs to its region, of a shape that broadcasts."""
        if row not in self._regions:
            cell = self._cells[row]
            inside = regions.inside(cell.mask, cell.width, cell.height)
            if latents.ndim == 2:  # Packed: tokens in rows, from left to right.
                num_rows = round((len(latents) * cell.height / cell.width) ** 0.5)
                cells = regions.in_cells(inside, num_rows, len(latents) // num_rows).reshape(-1, 1)
            else:
                cells = regions.in_cells(inside, *latents.shape[-2:])
            self._regions[row] = torch.from_numpy(cells).to(latents.device)
        return self._regions[row]

    def _spread_rows(self) -> list[int]:
        """Return the rows whose words are spread in this call."""
        return [
            row
            for row, cell in enumerate(self._cells)
            if cell.spread
            and self._call < max(1, round(cell.spread * cell.num_inference_steps)) * self.order
        ]

    def _spread(self, rows: Sequence[int], words: Any) -> Any:
        """Move the words of rows, what they are guided away from among them, by seeded noise.

        All words of a picture are moved alike, along a random mixture of what sets them apart from
        their mean: noise of each word's own cancels out where a denoiser looks at many of them, and
        in any other direction there is nothing that a denoiser knows. The first word is left out of
        the mixture: language models give it values that are a thousand times those of the others.
        """
        spread = words.clone() if isinstance(words, torch.Tensor) else list(words)
        for row in rows:
            for place in range(row, len(words), len(self._cells)):
                own = words[place]
                (generator,) = fresh_generators([self._cells[row].seed ^ _SPREAD_STREAM])
                values = own.float().flatten(1)
                rest = values[min(1, len(values) - 1) :]
                apart = rest - rest.mean(0)
                noise = torch.randn(1, len(apart), generator=generator).to(own.device) @ apart
                farthest = apart.square().sum(1).sqrt().amax()
                far = _SPREAD_STRENGTH * farthest / noise.square().sum().sqrt().clamp_min(1e-6)
                spread[place] = (values + noise * far).reshape(own.shape).to(own.dtype)
        return spread


def _with_words(
    forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], change: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a denoiser with its words changed."""
    given = inspect.signature(forward).bind(*args, **kwargs)
    name = next((name for name in _WORDS if given.arguments.get(name) is not None), None)
    if name is None:
        raise InputError("spread_unsupported", field="spread")
    given.arguments[name] = change(given.arguments[name])
    return given.args, given.kwargs


def _form(output: Any) -> Any:
    """Return what a denoiser's output looks like: the same, with a row of zeros a tensor."""
    if isinstance(output, torch.Tensor):
        return torch.zeros_like(output[:1], device="cpu")
    if isinstance(output, dict):  # diffusers' own classes are
        return type(output)(**{name: _form(value) for name, value in output.items()})
    if isinstance(output, list):  # one a row
        return [_form(output[0][None])[0]]
    return tuple(_form(value) for value in output)


def _blank(form: Any, sample: Sequence[torch.Tensor] | torch.Tensor) -> Any:
    """Make an output of a form, of zeros that nobody reads, with as many rows as a sample has."""
    if isinstance(form, torch.Tensor):
        return torch.cat([form.to(sample[0].device)] * len(sample))
    if isinstance(form, dict):
        return type(form)(**{name: _blank(part, sample) for name, part in form.items()})
    if isinstance(form, list):
        return [form[0].to(sample[0].device) for _ in sample]
    return tuple(_blank(part, sample) for part in form)
