"""Steering: a child picture, a variation of its parent, follows the parent's denoising trajectory.

A trajectory records each call of `scheduler.step`, one or two in each inference step: the
denoiser's output, which is the scheduler's input, and the latents that result. In the first
`held_steps` steps a child's row of a batch is held: its output and latents are replaced by the
parent's. While all rows are held, the denoiser does not run. If a child has a mask, latents outside
its white region are replaced by the parent's after each call. As a row's numbers do not depend on
its neighbours (the lock, diffusers_backend.py), a trajectory that is not in memory can be computed
again, bit for bit, in any batch of the same width.
"""

import inspect
import math
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

_SPREAD_STRENGTH: Final = 0.5  # Length of tokens' move; 1 is the greatest distance from their mean
_SPREAD_STREAM: Final = 0x53505244  # XORed with a seed, to draw noise other than the picture's
# Names of denoisers' arguments: prompt embeddings (a tensor, or a list of one a row); latents
_EMBEDDINGS: Final = ("encoder_hidden_states", "cap_feats", "text_bth")
_SAMPLES: Final = ("sample", "hidden_states", "x")


class Halted(Exception):  # noqa: N818 (a signal, not an error)
    """All steps of a parent that its children need are recorded."""


@dataclass(kw_only=True)
class Trajectory:
    """The scheduler's inputs and results while one picture was denoised: tensors on the CPU."""

    inputs: list[torch.Tensor] = field(default_factory=list)  # Outputs of the denoiser
    latents: list[torch.Tensor] = field(default_factory=list)  # (C, h, w); packed (tokens, C)
    output_form: Any = None  # The denoiser's output, on the device "meta": shapes without data
    pixels: Pixels | None = None  # The picture; None if halted, failed or decoded by a tiny decoder

    @property
    def num_bytes(self) -> int:
        """How much memory the trajectory takes."""
        pixels = 0 if self.pixels is None else self.pixels.nbytes
        return pixels + sum(each.nbytes for each in (*self.inputs, *self.latents))

    def suffices_for(self, child: Recipe, order: int) -> bool:
        """Tell whether a child can follow it: for `held_steps`, or to the end with a mask."""
        return self.pixels is not None or (
            not child.mask and len(self.inputs) >= child.held_steps * order
        )


@dataclass(frozen=True, kw_only=True)
class SteeringPlan:
    """The parents' trajectories that a call of a pipeline follows, and what the call records."""

    parents: Mapping[str, Trajectory] = field(default_factory=dict)  # By the ids of their recipes
    halt_steps: int = 0  # Raise Halted after so many steps, without pictures; 0 runs all
    max_bytes: float = 0  # Of all recorded trajectories; if they need more, all are dropped


class Steering:
    """Steers one call of a pipeline, and records its trajectories.

    `cells` are the recipes of a batch's rows; those after the first `num_pictures` are padding.
    """

    last: torch.Tensor  # The latents after the last call of the scheduler

    def __init__(self, cells: Sequence[Recipe], plan: SteeringPlan, *, num_pictures: int) -> None:
        self.order = 1  # How many times a step the scheduler is called
        self._num_pictures = num_pictures
        self._inputs: list[torch.Tensor] = []  # The scheduler's, at each call
        self._latents: list[torch.Tensor] = []  # After each call; (num_pictures, …)
        self._output_form: Any = None
        self._cells = cells
        self._plan = plan
        self._parents = [
            plan.parents[cell.parent.id] if cell.parent else Trajectory() for cell in cells
        ]
        self._call = 0  # How often the scheduler was called
        self._regions: dict[int, torch.Tensor] = {}

    @property
    def trajectories(self) -> list[Trajectory]:
        """What was recorded of each picture; without tensors if they took too much memory."""
        inputs = [each.cpu() for each in self._inputs]
        latents = [each.cpu() for each in self._latents]
        return [
            Trajectory(
                inputs=[each[row] for each in inputs],
                latents=[each[row] for each in latents],
                output_form=self._output_form or self._parents[row].output_form,
            )
            for row in range(self._num_pictures)
        ]

    def steer_input(self, output: torch.Tensor) -> torch.Tensor:
        """Record and return the denoiser's output, replaced by the parent's in held rows."""
        held = [row for row in range(len(self._cells)) if self._is_held(row)]
        if held:
            output = output.clone()
        for row in held:
            output[row] = self._parents[row].inputs[self._call].to(output.device)
        self._record(self._inputs, output)
        return output

    def steer_result(self, result: Any) -> Any:
        """Record and return the result, with the parent's latents in held rows and outside masks.

        Raises Halted after the plan's `halt_steps`.
        """
        is_tuple = isinstance(result, tuple)
        latents = result[0] if is_tuple else result.prev_sample
        steered = self.last = self._steered(latents)
        self._record(self._latents, steered)
        self._call += 1
        if self._call == self._plan.halt_steps * self.order:
            raise Halted
        if steered is latents:
            return result
        if is_tuple:
            return (steered, *result[1:])
        result.prev_sample = steered
        return result

    @contextmanager
    def applied_to(self, pipeline: Any, denoiser: str) -> Iterator[None]:
        """In the block, skip the denoiser while all rows are held, and apply `_move_tokens`."""
        module = getattr(pipeline, denoiser)
        original = module.forward

        @wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            if all(self._is_held(row) for row in range(len(self._cells))):
                sample = next((kwargs[name] for name in _SAMPLES if name in kwargs), None)
                sample = args[0] if sample is None else sample
                return _blank_output(self._parents[0].output_form, sample)
            if rows := [row for row in range(len(self._cells)) if self._moves_tokens(row)]:
                change = partial(self._move_tokens, rows)
                args, kwargs = _with_embeddings(original, args, kwargs, change)
            output = original(*args, **kwargs)
            self._output_form = self._output_form or tree_map(lambda part: part.to("meta"), output)
            return output

        with replaced(module, "forward", forward):
            yield

    def _record(self, recorded: list[torch.Tensor], batch: torch.Tensor) -> None:
        """Record a batch without its padding; drop all records if they take too much memory."""
        pictures = batch[: self._num_pictures].detach()
        if 2 * (self._call + 1) * pictures.nbytes <= self._plan.max_bytes:
            recorded.append(pictures.clone())
        else:
            self._inputs.clear()
            self._latents.clear()

    def _is_held(self, row: int) -> bool:
        return self._call < self._cells[row].held_steps * self.order

    def _steered(self, latents: torch.Tensor) -> torch.Tensor:
        rows = [r for r, cell in enumerate(self._cells) if self._is_held(r) or cell.mask]
        if not rows:
            return latents
        steered = latents.clone()  # Keeps the memory layout: torch chooses kernels by it
        for row in rows:
            from_parent = self._parents[row].latents[self._call].to(latents.device)
            if self._is_held(row):
                steered[row] = from_parent
            else:
                region = self._region(row, from_parent)
                steered[row] = torch.where(region, latents[row], from_parent)
        return steered

    def _region(self, row: int, latents: torch.Tensor) -> torch.Tensor:
        """Return a boolean tensor that broadcasts to a row's latents: true in the row's region."""
        if row not in self._regions:
            recipe = self._cells[row]
            inside = starts.inside(recipe.mask, recipe.width, recipe.height)
            if latents.ndim == 2:  # Packed: one token after another, line by line
                num_lines = round((len(latents) * recipe.height / recipe.width) ** 0.5)
                num_columns = len(latents) // num_lines
                region = starts.in_cells(inside, num_lines, num_columns).reshape(-1, 1)
            else:
                region = starts.in_cells(inside, *latents.shape[-2:])
            self._regions[row] = torch.from_numpy(region).to(latents.device)
        return self._regions[row]

    def _moves_tokens(self, row: int) -> bool:
        cell = self._cells[row]
        steps = max(1, round(cell.spread * cell.num_inference_steps))
        return cell.spread > 0 and self._call < steps * self.order

    def _move_tokens(self, rows: Sequence[int], embeddings: Any) -> Any:
        """Return embeddings with the tokens of `rows` and of their negative prompts moved by noise.

        All tokens of a prompt are moved by the same vector, a random mixture of their differences
        from their mean: separate noise for each token would cancel out, and other directions mean
        nothing to a denoiser. The first token is left out of the mixture: language models give it
        values a thousand times as large.
        """
        is_tensor = isinstance(embeddings, torch.Tensor)
        result = embeddings.clone() if is_tensor else list(embeddings)
        for row in rows:
            for index in range(row, len(embeddings), len(self._cells)):
                prompt = embeddings[index]
                (generator,) = fresh_generators([self._cells[row].seed ^ _SPREAD_STREAM])
                tokens = prompt.float().flatten(1)  # (tokens, width)
                others = tokens[min(1, len(tokens) - 1) :]
                differences = others - others.mean(0)
                shares = torch.randn(1, len(differences), generator=generator).to(prompt.device)
                mixture = shares @ differences
                farthest = differences.square().sum(1).sqrt().amax()
                length = mixture.square().sum().sqrt().clamp_min(1e-6)
                moved = tokens + mixture * (_SPREAD_STRENGTH * farthest / length)
                result[index] = moved.reshape(prompt.shape).to(prompt.dtype)
        return result


def _with_embeddings(
    forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], change: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a denoiser's arguments with `change` applied to the prompts' embeddings."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    name = next((name for name in _EMBEDDINGS if bound.arguments.get(name) is not None), None)
    if name is None:
        raise InputError("spread_unsupported", field="spread")
    bound.arguments[name] = change(bound.arguments[name])
    return bound.args, bound.kwargs


def _blank_output(form: Any, sample: Sequence[torch.Tensor] | torch.Tensor) -> Any:
    """Return a denoiser's output of zeros for `sample`; `steer_input` replaces all its rows."""

    def zeros(part: Any) -> Any:
        if isinstance(part, list):  # One tensor for each row
            return [torch.zeros_like(part[0], device=sample[0].device) for _ in sample]
        return torch.cat([torch.zeros_like(part[:1], device=sample[0].device)] * len(sample))

    return tree_map(zeros, form, is_leaf=lambda part: isinstance(part, list))


def max_bytes() -> float:
    """Return how many bytes cached trajectories may take (`SEEDGRID_WAY_MB`); may be infinite."""
    return megabytes("SEEDGRID_WAY_MB") or math.inf


def missing_parents(
    recipes: Sequence[Recipe], find: Callable[[Recipe], Trajectory | None], order: int
) -> tuple[dict[str, Trajectory], list[tuple[list[Recipe], int]]]:
    """Return trajectories in memory that suffice, by parent id, and batches of parents to paint.

    With each batch comes the number of steps to run; 0 stands for all. `find` looks a parent up in
    memory. The scheduler is called `order` times in each step.
    """
    in_memory: dict[str, Trajectory] = {}
    needed: dict[str, tuple[Recipe, list[Recipe]]] = {}
    for recipe in recipes:
        if recipe.parent:
            needed.setdefault(recipe.parent.id, (recipe.parent, []))[1].append(recipe)
    for parent, children in needed.values():
        found = find(parent)
        if found is not None and all(found.suffices_for(child, order) for child in children):
            in_memory[parent.id] = found
    missing = [parent for parent, _ in needed.values() if parent.id not in in_memory]
    batches: list[tuple[list[Recipe], int]] = []
    for batch in in_batches(missing, lambda parent: parent):
        children = [child for parent in batch for child in needed[parent.id][1]]
        needs_all = any(child.mask for child in children)
        batches.append((batch, 0 if needs_all else max(child.held_steps for child in children)))
    return in_memory, batches
