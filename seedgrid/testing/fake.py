"""FakeBackend: the Backend protocol without torch and without a model, for tests.

Each recipe has a new generator, as in a real pipeline: its first draw decides the composition, its
last one the grain, so pictures change if a generator is shared, used before or given to another
recipe. The prompts decide the colour. Calls are recorded, and can be slow or fail on request.
"""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError, RunCancelled, RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import ModelRef, Passport, Recipe
from seedgrid.diffusion.backend import LoadWatch, Outcome, Placement, Watch
from seedgrid.storage import starts

Noise = NDArray[np.float64]

Generators = Callable[[Sequence[Recipe]], Sequence[np.random.Generator]]

_FIELDS: Final = 8  # Number of fields along a side

FAKE_CARD: Final = ModelCard(
    ref=ModelRef(id="fake", weights_sha256="0" * 64),
    family="FakePipeline",
    width=256,
    height=256,
    num_inference_steps=8,
    max_steps=150,
    scheduler="DDIM",
    schedulers=("DDIM", "Euler"),
    has_start=True,
    has_weights=True,
    hints={"modifier": ("highly realistic", "artsy", "trending", "colorful")},
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An error in one call of `paint`."""

    step: int = 1  # From 1; one more than the last step means after it
    error: BaseException | None = None  # The error to raise; by default `picture_nan`
    cell: int | None = None  # The only picture of the batch that fails; None means all


@dataclass(frozen=True, kw_only=True)
class Call:
    """A recorded call of `paint`."""

    recipes: tuple[Recipe, ...]
    placement: Placement
    thread: int


def fresh_generators(recipes: Sequence[Recipe]) -> list[np.random.Generator]:
    """Return a new generator for each recipe, in order."""
    return [np.random.Generator(np.random.PCG64(recipe.seed)) for recipe in recipes]


class FakeBackend:
    """Paints a grid of lighter and darker fields; some tests pass wrong `generators`.

    Each step takes `step_delay_s`, the first `prepare` `load_delay_s`.
    """

    def __init__(
        self,
        *,
        card: ModelCard = FAKE_CARD,
        step_delay_s: float = 0.0,
        load_delay_s: float = 0.0,
        generators: Generators = fresh_generators,
    ) -> None:
        self.calls: list[Call] = []
        self.faults: deque[Fault | None] = deque()  # Of the next calls; None is one without a fault
        self.closed = False
        self._card = card
        self._step_delay_s = step_delay_s
        self._load_delay_s = load_delay_s
        self._generators = generators
        self._loaded = False

    def card(self, model: str | None) -> ModelCard:
        """Return the card of the only model; `"bundled"` and None mean it, too."""
        if model not in (None, "bundled", self._card.ref.id):
            raise ModelError("model_missing", value=model)
        return self._card

    def prepare(
        self,
        recipe: Recipe,
        placement: Placement,
        watch: LoadWatch | None = None,  # noqa: ARG002 (nothing is loaded)
    ) -> Passport:
        """Pretend to load, once, and return the passport of this machine."""
        if recipe.model != self._card.ref:
            raise ModelError("model_missing", value=recipe.model.id)
        if not self._loaded:
            time.sleep(self._load_delay_s)
            self._loaded = True
        threads, tiles = placement.threads or 1, placement.vae_tiling
        return Passport(seedgrid="fake", device="fake", threads=threads, vae_tiling=tiles)

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:  # noqa: ARG002 (protocol)
        """Tell whether `prepare` was called."""
        return self._loaded

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Paint a picture for each recipe; raise RunCancelled, a fault's error or ValueError."""
        _check_batch(recipes)
        thread = threading.get_ident()
        self.calls.append(Call(recipes=tuple(recipes), placement=placement, thread=thread))
        fault = self.faults.popleft() if self.faults else None
        generators = self._generators(recipes)
        canvases = [_Canvas(*pair) for pair in zip(recipes, generators, strict=True)]
        total = recipes[0].num_inference_steps
        shown = canvases if placement.previews else ()
        watch.noise(partial(_previews, shown, 0.0))
        for number in range(1, total + 1):
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            _raise_fault(fault, number)
            self.pause(recipes, number, watch)
            for canvas in canvases:
                canvas.step()
            watch.step(number, total, partial(_previews, shown, number / total))
        _raise_fault(fault, total + 1)
        return tuple(
            RunError("picture_nan") if fault and fault.cell == cell else _finished(canvas)
            for cell, canvas in enumerate(canvases)
        )

    def pause(self, recipes: Sequence[Recipe], number: int, watch: Watch) -> None:  # noqa: ARG002 (for others)
        """Take the time of one step; tests replace it."""
        time.sleep(self._step_delay_s)

    def probe(self, *_: object) -> None:
        """Return None: no arithmetic is shared by the pictures of a batch."""

    def close(self) -> None:
        """Record that it was called."""
        self.closed = True


class _Canvas:
    """A picture that is being painted, with its own generator."""

    def __init__(self, recipe: Recipe, generator: np.random.Generator) -> None:
        self.recipe = recipe
        self._generator = generator
        noise = generator.standard_normal((_FIELDS, _FIELDS))
        for share in recipe.noise_mix:
            other = np.random.Generator(np.random.PCG64(share.seed)).standard_normal(noise.shape)
            angle = share.weight * np.pi / 2
            noise = np.cos(angle) * noise + np.sin(angle) * other
        self._noise = noise
        self._colour = _colour(f"{recipe.prompt}|{recipe.negative_prompt}")
        self._grain = self._draw()

    def step(self) -> None:
        self._grain = self._draw()

    def finish(self) -> Pixels:
        """Return the fields with a grain of at most 3/255 from the last step."""
        picture = self._with_start(self._paint(1)).astype(np.int16)
        grain = (self.recipe.guidance_scale / 10 * self._grain).clip(-3, 3)
        return (picture + grain.astype(np.int16)).clip(0, 255).astype(np.uint8)

    def _with_start(self, picture: Pixels) -> Pixels:
        """Mix the picture with the start picture, if any, by the strength."""
        recipe = self.recipe
        if not recipe.start:
            return picture
        image = Image.fromarray(starts.pixels(recipe.start))
        start = np.asarray(ImageOps.fit(image, (recipe.width, recipe.height)), dtype=np.float64)
        mixed = recipe.strength * picture + (1 - recipe.strength) * start
        return np.asarray(np.rint(mixed), dtype=np.uint8)

    def preview(self, done: float) -> Pixels:
        """Return it at a quarter of its width; the noise fades as `done` goes from 0 to 1."""
        picture = self._paint(4)
        height, width, _ = picture.shape
        noise = 128 + 70 * self._grain[:height, :width]
        return (picture * done + noise * (1 - done)).clip(0, 255).astype(np.uint8)

    def _paint(self, shrink: int) -> Pixels:
        width, height = self.recipe.width // shrink, self.recipe.height // shrink
        rows, columns = (np.arange(size) * _FIELDS // size for size in (height, width))
        light = 0.5 + 0.4 * np.tanh(self._noise[rows][:, columns, None])  # (H, W, 1)
        return np.asarray(np.rint(255 * light * self._colour), dtype=np.uint8)

    def _draw(self) -> Noise:
        size = (self.recipe.height, self.recipe.width, 1)
        return self._generator.standard_normal(size, dtype=np.float32).astype(np.float64)


def _finished(canvas: _Canvas) -> Pixels:
    """Finish a picture; with a region, paint the parent and use the parent's pixels outside."""
    recipe, own = canvas.recipe, canvas.finish()
    if recipe.parent is None or not recipe.mask:
        return own
    parent = _Canvas(recipe.parent, *fresh_generators([recipe.parent]))
    for _ in range(recipe.parent.num_inference_steps):
        parent.step()
    inside = starts.inside(recipe.mask, recipe.width, recipe.height)
    return starts.put_back(own, _finished(parent), inside, recipe.feather)


def _colour(words: str) -> Noise:
    """Return a colour that the words decide: shape (3,), each channel 0.5 … 1."""
    return 0.5 + np.frombuffer(hashlib.sha256(words.encode()).digest()[:3], np.uint8) / 510


def _previews(canvases: Sequence[_Canvas], done: float) -> tuple[Pixels, ...]:
    return tuple(canvas.preview(done) for canvas in canvases)


def _raise_fault(fault: Fault | None, number: int) -> None:
    if fault is not None and fault.cell is None and fault.step == number:
        raise fault.error or RunError("picture_nan")


def _check_batch(recipes: Sequence[Recipe]) -> None:
    if len({recipe.batch_key for recipe in recipes}) != 1:
        raise ValueError("the recipes of one batch differ in more than words and noise")
    if len(recipes) > recipes[0].lock_width:
        raise ValueError(f"{len(recipes)} recipes do not fit a batch of {recipes[0].lock_width}")
