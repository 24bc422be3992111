"""Polish the trained denoiser along its sampler's own steps.

Goes on from a checkpoint of under 60 MB (weights, and Adam's state in half precision; Muon's
momentum reaches back twenty steps only), so a leg can run on any machine: `python -m
tools.training polish --device cuda --minutes 9`. SIGTERM saves and stops. Pictures are drawn as
they are needed; none is seen twice.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
from diffusers.models.attention_processor import AttnProcessor
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import nn

from tools.training import denoiser
from tools.training.batches import CAPTION_DROPOUT
from tools.training.checkpoints import note, part, save_checkpoint
from tools.training.coupling import write_normals
from tools.training.dataset import draw_many, latent_map
from tools.training.latents import LatentMap, shares_of_patches
from tools.training.networks import Denoiser, in_int8, make_scheduler
from tools.training.optimizer import MuonAdam, matrix_names, rate_share
from tools.training.places import work_dir
from tools.training.reading import freeze_reading, is_sharpened, sharpen_reading
from tools.training.rollout import Lesson, learn_from_rollout, sampler_steps
from tools.training.scenes import fine_places
from tools.training.steadying import is_steadied, steady_reading
from tools.training.thresholds import freeze_thresholds, has_thresholds, sharpen_thresholds
from tools.training.tokenizer import to_ids, tokenizer
from tools.training.words import Wording, caption, draw_wording, plain_caption

NUM_STEPS = (1, 1, 1, 1, 1, 2)
"""How many steps the sampler takes, one of these: each teaches the first."""

WANDERING_SHARE = 0.8
"""How often steps after the first are at random times, so that any number is learned."""

HARD_SHARE = 0.15
"""How many pictures show what is painted worst, a subject in a style."""
HARD_PAIRS = (
    *(("robot", "mondrian"),) * 3,
    *(("dragon", "mondrian"),) * 3,
    *(("sunflower", "mondrian"),) * 2,
    *(("windmill", "van gogh"),) * 2,
    *(("bicycle", "blueprint"),) * 2,
    *(("robot", "stained glass"),) * 3,
    *(("owl", "mondrian"),) * 2,
    *((subject, "mondrian") for subject in ("windmill", "mushroom", "cat")),
    *((subject, "stained glass") for subject in ("windmill", "dragon")),
    *((subject, "blueprint") for subject in ("horse", "rose", "train")),
    *(("train", "mondrian"),) * 2,
    *(("train", "pixel art"),) * 2,
    *(("bridge", "mondrian"),) * 2,
    *(("bridge", "stained glass"), ("rabbit", "pixel art")),
)

FACE_SHARE = 0.35
"""How many show a subject with eyes."""
FACES = (
    *("dragon", "bird", "rabbit", "cat") * 3,
    *("labrador", "fish", "portrait", "butterfly") * 2,
    *("horse", "robot", "fox", "owl"),
)
PLAIN_FACE_SHARE = 0.5
"""How many of these are in no style: a sharp eye on a plain ground is missed most."""

FIRST_SHARE = 0.05
"""How many show the guide's example, the first picture that anyone sees."""

BARE_SHARE = 0.7
"""How many show a subject in a style and nothing else, as first prompts do."""

PLAIN_SHARE = 0.5
"""How many captions are in the typical form."""

INT8_SHARE = 0.3
"""How many lessons are learned with the weights as int8 has them, so that pictures bear it."""
SHARPENING_SEED = 5
PREPARING_SEED = 11
NUM_CAPTIONS = 540
SAVE_EVERY_S = 240
LOG_EVERY = 50

Batch = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], list[str]]
"""Latents, shape `(N, 24, 16, 16)`, where their fine parts are, `(N, 16, 16, 192)`, normals,
`(N, 12)`, and captions."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how fast."""

    pictures: int = 400_000
    minutes: float = float("inf")
    batch_size: int = 24
    learning_rate: float = 2.5e-4
    cooldown: float = 1.0
    workers: int = 1
    device: str = "cpu"
    seed: int = 5


def checkpoint_path() -> Path:
    """Where the polishing stands."""
    return work_dir() / "polish.safetensors"


def _drawn(latent_map: LatentMap, seed: int, size: int, step: int) -> Batch:
    """Latents, numbers and captions of the batch of a step."""
    pictures, normals, wordings = draw_many([seed, step], size, chosen_wording)
    drawings = zip(pictures, wordings, normals, strict=True)
    fine = np.stack([fine_places(*drawing) for drawing in drawings])
    rng = np.random.default_rng([seed, step, 1])
    captions = [_caption(wording, rng) for wording in wordings]
    return latent_map.encode(pictures), shares_of_patches(fine), normals, captions


def chosen_wording(rng: np.random.Generator) -> Wording:
    """What a picture shows: now and then what is hard, the guide's example, or nothing more."""
    wording = draw_wording(rng)
    if rng.random() < FIRST_SHARE:
        return replace(wording, subject="labrador", style="vermeer")
    chance = rng.random()
    if chance < HARD_SHARE:
        subject, style = HARD_PAIRS[rng.integers(len(HARD_PAIRS))]
        wording = replace(wording, subject=subject, style=style)
    elif chance < HARD_SHARE + FACE_SHARE:
        style = "plain" if rng.random() < PLAIN_FACE_SHARE else wording.style
        wording = replace(wording, subject=FACES[rng.integers(len(FACES))], style=style)
    if rng.random() < BARE_SHARE:
        return Wording(subject=wording.subject, style=wording.style)
    return wording


def _caption(wording: Wording, rng: np.random.Generator) -> str:
    chance = rng.random()
    if chance < CAPTION_DROPOUT:
        return ""
    return plain_caption(wording) if chance > 1 - PLAIN_SHARE else caption(wording, rng)


def drawn_ahead(
    pool: Pool, draw: Callable[[int], Batch], steps: Iterable[int], *, count: int
) -> Iterator[Batch]:
    """The batches in order, so many drawn ahead; `imap` would draw them all, and keep them."""
    waiting: deque[AsyncResult[Batch]] = deque()
    for step in steps:
        waiting.append(pool.apply_async(draw, (step,)))
        if len(waiting) > count:
            yield waiting.popleft().get()
    while waiting:
        yield waiting.popleft().get()


@contextmanager
def int8_weights(network: nn.Module) -> Iterator[None]:
    """Round the weights of linear layers to int8 while this is open."""
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    kept = [layer.weight.detach().clone() for layer in layers]
    for layer in layers:
        layer.weight.data = in_int8(layer.weight.detach())
    try:
        yield
    finally:
        for layer, weight in zip(layers, kept, strict=True):
            layer.weight.data = weight


class Polishing:
    """The training and its state."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.words, self.map = settings, tokenizer(), latent_map()
        self.scheduler = make_scheduler()
        self.teacher, self.model = _to_be_trained(settings.device), _to_be_trained(settings.device)
        self.seen, self.stop = 0, False
        stored = load_file(checkpoint_path()) if checkpoint_path().exists() else {}
        if stored:
            self.model.load_state_dict(part(stored, "model"))
        if is_steadied(self.model):
            freeze_reading(self.model)
        if has_thresholds(self.model):
            freeze_thresholds(self.model)
        self.optimizer = MuonAdam(self.model.named_parameters(), matrix_names(self.model))
        if stored:
            self.optimizer.restore(part(stored, "opt"))
            self.optimizer.step_count, self.seen = int(stored["steps"]), int(stored["seen"])
        self.to_pixels = torch.from_numpy(self.map.basis * self.map.scale).to(settings.device)

    def _batches(self, drawing: ExitStack) -> Iterator[Batch]:
        """The batches from here on, drawn here or by processes of their own."""
        settings, first = self.settings, self.optimizer.step_count
        draw = partial(_drawn, self.map, settings.seed, settings.batch_size)
        steps = range(first, first + settings.pictures // settings.batch_size + 1)
        if settings.workers < 2:
            return map(draw, steps)
        pool = drawing.enter_context(mp.get_context("spawn").Pool(settings.workers))
        return drawn_ahead(pool, draw, steps, count=2 * settings.workers)

    def run(self) -> None:
        """Train until the pictures or the minutes are used up, or to SIGTERM."""
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop", True))
        settings, started = self.settings, time.monotonic()
        saved_at, errors = started, []
        with ExitStack() as drawing:
            for batch in self._batches(drawing):
                elapsed_min = (time.monotonic() - started) / 60
                used = max(self.seen / settings.pictures, elapsed_min / settings.minutes)
                if used >= 1 or self.stop:
                    break
                errors.append(self._step(*batch, left=1 - used))
                if len(errors) == LOG_EVERY:
                    self._log(errors)
                    errors = []
                if time.monotonic() - saved_at > SAVE_EVERY_S:
                    self.save()
                    saved_at = time.monotonic()
        self.save()

    def _step(
        self,
        latents: NDArray[np.float32],
        fine: NDArray[np.float32],
        normals: NDArray[np.float32],
        captions: list[str],
        *,
        left: float,
    ) -> tuple[float, ...]:
        device, step = self.settings.device, self.optimizer.step_count
        rng = np.random.default_rng([self.settings.seed, step, 2])
        generator = torch.Generator().manual_seed(int(rng.integers(2**32)))
        noise = torch.randn(latents.shape, generator=generator)
        lesson = Lesson(
            noise=write_normals(noise, torch.from_numpy(normals)).to(device),
            latents=torch.from_numpy(latents).to(device),
            ids=torch.tensor(to_ids(self.words, captions), device=device),
            has_words=torch.tensor([bool(caption) for caption in captions], device=device),
            fine=torch.from_numpy(fine).to(device),
        )
        steps = sampler_steps(self.scheduler, self._times(rng))
        with ExitStack() as rounding:
            if rng.random() < INT8_SHARE:
                rounding.enter_context(int8_weights(self.model))
            errors = learn_from_rollout(self.model, self.teacher, lesson, steps, self.to_pixels)
        share = rate_share(step, left, warm_steps=60, cooldown=self.settings.cooldown)
        self.optimizer.step(self.settings.learning_rate * share)
        self.seen += len(latents)
        return self._decibels(errors[0]), self._decibels(errors[-1])

    def _times(self, rng: np.random.Generator) -> list[int]:
        count = int(rng.choice(NUM_STEPS))
        if rng.random() < WANDERING_SHARE:
            between = rng.choice(np.arange(1, 999), count - 1, replace=False)
            return [999, *(int(time) for time in np.sort(between)[::-1])]
        self.scheduler.set_timesteps(count)
        return [int(time) for time in self.scheduler.timesteps]

    def _decibels(self, error: torch.Tensor) -> float:
        """PSNR of the picture at half size, but for what the latents cannot say."""
        return float(-10 * torch.log10(error / 4))

    def _log(self, errors: list[tuple[float, ...]]) -> None:
        first, last = (round(float(value), 3) for value in np.mean(errors, axis=0))
        print(
            note("polish", pictures=self.seen, first_step_db=first, last_step_db=last), flush=True
        )

    def save(self) -> None:
        """Write where the polishing stands."""
        save_checkpoint(
            checkpoint_path(),
            weights=self.model.state_dict(),
            averages={},
            optimizer={
                name: value.to(torch.bfloat16)
                for name, value in self.optimizer.state.items()
                if name.rpartition(".")[0] not in self.optimizer.matrices
            },
            steps=self.optimizer.step_count,
            seen=self.seen,
        )


def _sharpened() -> Denoiser:
    """The denoiser before it was polished, its reading sharpened."""
    model = denoiser.load_ema()
    if not is_sharpened(model):
        sharpen_reading(model, torch.Generator().manual_seed(SHARPENING_SEED))
    return model


def _to_be_trained(device: str) -> Denoiser:
    model = _sharpened().to(device, memory_format=torch.channels_last)
    # Torch's fused attention is slow backwards on a CPU.
    model.unet.set_attn_processor(AttnProcessor())
    model.text_encoder.set_attn_implementation("eager")
    return model


def load_networks() -> Denoiser:
    """The last checkpoint's weights, polished where they were, or untrained networks."""
    if not denoiser.checkpoint_path().exists():
        return denoiser.build().eval()
    model = _sharpened()
    if checkpoint_path().exists():
        model.load_state_dict(part(load_file(checkpoint_path()), "model"))
    return model.eval()


def polish(settings: Settings) -> None:
    """Go on polishing from the last checkpoint, or else from the denoiser's."""
    Polishing(settings).run()


def steady() -> None:
    """Let the last checkpoint's denoiser read its numbers without chance (`steadying.py`)."""
    _prepare(steady_reading, is_steadied)


def choose() -> None:
    """Let the last checkpoint's denoiser choose at once by a number's sign (`thresholds.py`)."""
    _prepare(sharpen_thresholds, has_thresholds)


def _prepare(
    change: Callable[[Denoiser, torch.Tensor, torch.Generator], None],
    is_done: Callable[[Denoiser], bool],
) -> None:
    """Change the last checkpoint's weights once, with captions as polishing draws them."""
    polishing, rng = Polishing(Settings()), np.random.default_rng(PREPARING_SEED)
    if is_done(polishing.model):
        raise SystemExit("the last checkpoint went through this step already: go on with polish")
    captions = [plain_caption(chosen_wording(rng)) for _ in range(NUM_CAPTIONS)]
    generator = torch.Generator().manual_seed(PREPARING_SEED)
    ids = torch.tensor(to_ids(polishing.words, captions))
    change(polishing.model, ids, generator)
    polishing.save()
