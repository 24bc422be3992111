"""A pipeline of a few numbers, sound or with a leak in any part, and a probe of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from painting import SilentWatch
from pictures import make_recipe
from torch import nn

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.probe import run_probe
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.diffusion.watched_parts import Watching
from seedgrid.diffusion.witness import Witness
from seedgrid.models.families import FAMILIES

FAMILY = FAMILIES["StableDiffusionPipeline"]
STEPS = 7
Change = Callable[[torch.Tensor], torch.Tensor]


class Words(nn.Module):
    """Reads a prompt as the numbers of its first four letters."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change
        self.table = nn.Embedding(256, 4)
        with torch.no_grad():
            self.table.weight.copy_(torch.arange(1024.0).reshape(256, 4).sin())

    def get_input_embeddings(self) -> nn.Module:
        return self.table

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.change(self.table(ids)).cos()


class Unet(nn.Module):
    """A denoiser that treats every row alike, and whatever is changed in what it gives."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change, self.num_calls = change, 0

    def forward(self, sample: torch.Tensor, time: int, states: torch.Tensor) -> torch.Tensor:
        self.num_calls += 1
        return self.change((sample + states.mean((1, 2))[:, None] + time).sin())


class Vae(nn.Module):
    """A decoder and an encoder, and whatever is changed in what they give."""

    def __init__(self, decoded: Change, encoded: Change) -> None:
        super().__init__()
        self.decoded, self.encoded = decoded, encoded

    def decode(self, latents: torch.Tensor) -> torch.Tensor:
        return self.decoded(latents.cos())

    def encode(self, images: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.encoded(images * 0.5),)


class Stepping:
    """A scheduler that goes half way."""

    def __init__(self, change: Change, foreseen: Change, before: Change) -> None:
        self.change, self.foreseen, self.before = change, foreseen, before

    def step(self, output: torch.Tensor, _time: int, sample: torch.Tensor) -> torch.Tensor:
        return self.change(0.5 * self.before(sample) + 0.5 * self.foreseen(output))


class Small:
    """A pipeline of four parts, and what is changed between them.

    Args:
        changes: What a part gives, by its name: "reading", "unet", "step" (and what enters it,
            "foreseen" and "before"), "vae" and "start"; or "words", "noise" and "picture" for what
            lies between the parts.
    """

    def __init__(self, **changes: Change) -> None:
        self.changes = changes
        self.batches: list[list[Recipe]] = []
        self.num_steps, self.encodes = STEPS, 0
        self.looks_aside = False
        self.decodes_again: Callable[[Sequence[Recipe]], bool] = lambda _: False
        of = self._of
        self.unet = Unet(of("unet"))
        self.components = {
            "unet": self.unet,
            "vae": Vae(of("vae"), of("start")),
            "text_encoder": Words(of("reading")),
            "scheduler": Stepping(of("step"), of("foreseen"), of("before")),
        }

    def _of(self, part: str) -> Change:
        return self.changes.get(part, lambda rows: rows)

    def __call__(self, recipes: Sequence[Recipe], watching: Watching) -> list[torch.Tensor]:
        self.batches.append(list(recipes))
        parts = SimpleNamespace(**self.components)
        with torch.no_grad(), watching.watching(self):
            letters = [list((r.prompt.encode() + b"    ")[:4]) for r in recipes]
            states = self._of("words")(parts.text_encoder(torch.tensor(letters)))
            noises = [
                torch.randn(6, generator=torch.Generator().manual_seed(r.seed)) for r in recipes
            ]
            latents = self._of("noise")(torch.stack(noises))
            if self.encodes:
                images = torch.ones(len(recipes), 6).split(self.encodes)
                latents = latents + torch.cat([parts.vae.encode(some)[0] for some in images])
            for time in range(self.num_steps):
                latents = parts.scheduler.step(parts.unet(latents, time, states), time, latents)
            if self.looks_aside and len(recipes) == 4:
                aside = parts.unet(torch.ones(3, 6), 0, torch.ones(3, 1, 1)) + 1
                assert parts.vae.decode(aside).isfinite().all()  # Three rows are none of the batch.
            picture = self._of("picture")(parts.vae.decode(latents))
            if self.decodes_again(recipes):
                parts.vae.decode(latents)
            return [picture]


def a_little_of_all(rows: torch.Tensor) -> torch.Tensor:
    return rows + 1e-3 * rows.mean(0)


def a_little_of_the_loudest(rows: torch.Tensor) -> torch.Tensor:
    """Passes over NaN: only a comparison shows it."""
    return rows + 1e-3 * rows.nan_to_num(0, 0, 0).abs().amax(0)


def when(is_so: Callable[[torch.Tensor], bool], change: Change) -> Change:
    return lambda rows: change(rows) if is_so(rows) else rows


def all_are_numbers(rows: torch.Tensor) -> bool:
    return bool(rows.isfinite().all())


def some_are_alike(rows: torch.Tensor) -> bool:
    """Nearly: a sixteenth louder."""
    ratio = rows[None] / rows[:, None]
    return bool(((ratio - 1.0625).abs() < 1e-3).all(-1).any())


def probe(small: Small, *, witness: Witness | None = None, **changes: Any) -> ProbeReport:
    settings = {"num_inference_steps": STEPS, "lock_width": 4} | changes
    recipe = make_recipe(**settings)
    return run_probe(recipe, small, SilentWatch(), family=FAMILY, witness=witness)


def painted(small: Small, width: int = 4) -> Witness:
    """Paint a grid as the page does, and watch it."""
    settings = {"num_inference_steps": STEPS, "lock_width": width}
    cells = [make_recipe(seed=9 + place, **settings) for place in range(width)]
    witness = Witness(cells)
    small(cells, witness)
    small.batches.clear()
    return witness
