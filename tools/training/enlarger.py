"""The network that makes the model's pictures four times as wide: pairs, training, file.

A picture of the model is smudged and a little displaced, but what it should be at any size can be
drawn. Most pairs are the model's own pictures at its defaults; a part keeps nearer to the drawing
(painted from it half way, or only encoded and decoded), which teaches lines rather than caution.

    train(Settings(minutes=5))
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoPipelineForImage2Image
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from torch.nn.functional import avg_pool2d
from tqdm import tqdm

from seedgrid.diffusion.upscaling import Compact
from tools.training.checkpoints import note, part, save_checkpoint
from tools.training.fidelity import wanted_picture
from tools.training.losses import edge_loss, enlarger_loss, psnr
from tools.training.optimizer import MuonAdam, rate_share
from tools.training.places import NETWORK_FILE, work_dir
from tools.training.sampling import BATCH, Sampler, bundled_sampler
from tools.training.words import Wording, draw_wording, plain_caption

SCALE = 4
NUM_FEATURES = 24
NUM_CONVOLUTIONS = 8
PAIRS_SEED = 71
FIRST_SEED = 200_000
SHARD_SIZE = 24
OWN, HALF, TRIP = "own", "half", "trip"
KINDS = (OWN, OWN, OWN, OWN, HALF, TRIP)
"""What one shard after another holds."""
HALF_STRENGTH = 0.5
TRIP_NOISE = 0.3
EMA_DECAY = 0.995
SAVE_EVERY_S = 60


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how fast."""

    steps: int = 2500
    minutes: float = float("inf")
    learning_rate: float = 2e-3
    cooldown: float = 0.6
    batch: int = 8
    crop_px: int = 48
    slope_weight: float = 0.5
    edge_weight: float = 0.03
    seed: int = 23


def make_pairs(folder: Path, shards: int) -> None:
    """Make the shards that are not there yet: what the model paints, and the drawings."""
    sampler = None
    for index in tqdm(range(shards), desc="pairs", unit="shard"):
        stem = _pairs_dir() / f"{index:04d}"
        if stem.with_suffix(".drawn.npy").exists():
            continue
        sampler = sampler or bundled_sampler(folder)
        rng = np.random.default_rng([PAIRS_SEED, index])
        wordings = [draw_wording(rng) for _ in range(SHARD_SIZE)]
        seeds = [FIRST_SEED + index * SHARD_SIZE + k for k in range(SHARD_SIZE)]
        np.save(
            stem.with_suffix(".made.npy"),
            _made(KINDS[index % len(KINDS)], sampler, wordings, seeds),
        )
        unfinished = stem.with_suffix(".tmp.npy")
        np.save(
            unfinished,
            np.stack([wanted_picture(w, s, SCALE) for w, s in zip(wordings, seeds, strict=True)]),
        )
        unfinished.rename(stem.with_suffix(".drawn.npy"))


def _made(
    kind: str, sampler: Sampler, wordings: list[Wording], seeds: list[int]
) -> NDArray[np.uint8]:
    prompts = [plain_caption(wording) for wording in wordings]
    if kind == OWN:
        return sampler.pictures(prompts, seeds)
    drawn = [Image.fromarray(wanted_picture(w, s)) for w, s in zip(wordings, seeds, strict=True)]
    if kind == TRIP:
        return _trips(sampler, drawn, seeds)
    painter = AutoPipelineForImage2Image.from_pipe(sampler.pipeline)
    painter.set_progress_bar_config(disable=True)
    made = []
    for start in range(0, len(prompts), BATCH):
        rows = slice(start, start + BATCH)
        output = painter(
            prompts[rows],
            image=drawn[rows],
            strength=HALF_STRENGTH,
            generator=[torch.Generator().manual_seed(seed) for seed in seeds[rows]],
            num_inference_steps=math.ceil(sampler.num_inference_steps / HALF_STRENGTH),
            guidance_scale=sampler.guidance_scale,
            output_type="np",
        )
        made.append(np.round(output.images * 255).astype(np.uint8))
    return np.concatenate(made)


@torch.no_grad()
def _trips(sampler: Sampler, drawn: list[Image.Image], seeds: list[int]) -> NDArray[np.uint8]:
    """Encode and decode, with a little noise in between."""
    vae, made = sampler.pipeline.vae, []
    for picture, seed in zip(drawn, seeds, strict=True):
        image = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float() / 127.5 - 1
        latents = vae.encode(image).latent_dist.mode()
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(latents.shape, generator=generator)
        amount = TRIP_NOISE * torch.rand(1, generator=generator)
        decoded = vae.decode(latents + amount * noise).sample[0].clamp(-1, 1)
        made.append(((decoded.permute(1, 2, 0) + 1) * 127.5).round().byte().numpy())
    return np.stack(made)


def checkpoint_path() -> Path:
    """Where the network stands."""
    return work_dir() / "enlarger.safetensors"


def load_enlarger() -> Compact:
    """The network with the averaged weights of the last checkpoint."""
    return Compact(part(load_file(checkpoint_path()), "ema"), SCALE)


class EnlargerTraining:
    """The training and its state."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.weights = untrained_weights()
        self.network = Compact(self.weights, SCALE)
        hidden = {f"body.{layer}.weight" for layer in range(2, 2 * NUM_CONVOLUTIONS + 1, 2)}
        self.optimizer = MuonAdam(self.weights.items(), hidden)
        self.ema = {name: value.detach().clone() for name, value in self.weights.items()}
        self.shards = [_open_shard(path) for path in sorted(_pairs_dir().glob("*.drawn.npy"))]
        if checkpoint_path().exists():
            stored = load_file(checkpoint_path())
            for name, value in part(stored, "model").items():
                self.weights[name].data.copy_(value)
            self.ema = part(stored, "ema")
            self.optimizer.restore(part(stored, "opt"))
            self.optimizer.step_count = int(stored["steps"])

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Matching crops `(N, 3, c, c)` and `(N, 3, 4c, 4c)`, 0 … 1."""
        side, rng = self.settings.crop_px, np.random.default_rng([self.settings.seed, step])
        small, large = [], []
        for _ in range(self.settings.batch):
            made, drawn = self.shards[int(rng.integers(len(self.shards)))]
            row = int(rng.integers(len(made)))
            top, left = (int(v) for v in rng.integers(0, made.shape[1] - side + 1, 2))
            near = np.s_[row, top : top + side, left : left + side]
            far = np.s_[
                row, top * SCALE : (top + side) * SCALE, left * SCALE : (left + side) * SCALE
            ]
            pair = made[near], drawn[far]
            if rng.random() < 0.5:
                pair = pair[0][:, ::-1], pair[1][:, ::-1]
            small.append(pair[0])
            large.append(pair[1])
        given, wanted = (torch.from_numpy(np.stack(each)) for each in (small, large))
        return given.permute(0, 3, 1, 2).float() / 255, wanted.permute(0, 3, 1, 2).float() / 255

    def run(self) -> None:
        """Train to the last step or for as long as was said."""
        begun = saved = time.monotonic()
        losses = []
        bar = tqdm(total=self.settings.steps, initial=self.optimizer.step_count, unit="step")
        while self.optimizer.step_count < self.settings.steps:
            losses.append(self._step(self.optimizer.step_count))
            bar.update()
            if len(losses) == 50:
                loss, decibels = (round(float(v), 4) for v in np.mean(losses, axis=0))
                bar.set_postfix(loss=loss, psnr=decibels)
                note("enlarger", step=self.optimizer.step_count, loss=loss, psnr=decibels)
                losses = []
            now = time.monotonic()
            if now - saved > SAVE_EVERY_S:
                self.save()
                saved = now
            if now - begun > 60 * self.settings.minutes:
                break
        self.save()

    def _step(self, step: int) -> tuple[float, float]:
        given, wanted = self.batch(step)
        made = self.network(given)
        loss = enlarger_loss(made, wanted, self.settings.slope_weight)
        for scale in (1, 2):
            pair = (avg_pool2d(each, scale) for each in (made, wanted))
            loss = loss + self.settings.edge_weight * edge_loss(*pair)
        loss.backward()
        left = 1 - step / self.settings.steps
        share = rate_share(step, left, warm_steps=50, cooldown=self.settings.cooldown)
        self.optimizer.step(self.settings.learning_rate * share, weight_decay=0.0)
        decay = min(EMA_DECAY, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, value in self.weights.items():
                self.ema[name].lerp_(value, 1 - decay)
        return float(loss.detach()), psnr(made.detach() * 2 - 1, wanted * 2 - 1)

    def save(self) -> None:
        """Write where the training stands."""
        save_checkpoint(
            checkpoint_path(),
            weights=self.weights,
            averages=self.ema,
            optimizer=self.optimizer.state,
            steps=self.optimizer.step_count,
        )


def train(settings: Settings) -> None:
    """Train from where it stands."""
    EnlargerTraining(settings).run()


def export_enlarger(folder: Path) -> Path:
    """Write the network's file into the model's folder."""
    path = folder / NETWORK_FILE
    path.parent.mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in load_enlarger().weights.items()}, path)
    return path


def untrained_weights() -> dict[str, torch.nn.Parameter]:
    """The network that makes each pixel sixteen: its last convolution gives nothing yet."""
    generator, weights = torch.Generator().manual_seed(3), {}
    widths = [3, *[NUM_FEATURES] * (NUM_CONVOLUTIONS + 1), 3 * SCALE**2]
    last = len(widths) - 2
    for index, (before, after) in enumerate(itertools.pairwise(widths)):
        bound = (2 / (9 * before)) ** 0.5 if index < last else 0.0
        kernel = torch.rand(after, before, 3, 3, generator=generator) * 2 - 1
        weights[f"body.{2 * index}.weight"] = torch.nn.Parameter(kernel * bound)
        weights[f"body.{2 * index}.bias"] = torch.nn.Parameter(torch.zeros(after))
        if index < last:
            slopes = torch.full((after,), 0.25)
            weights[f"body.{2 * index + 1}.weight"] = torch.nn.Parameter(slopes)
    return weights


def _pairs_dir() -> Path:
    folder = work_dir() / "enlarger_pairs"
    folder.mkdir(exist_ok=True)
    return folder


def _open_shard(drawn: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    made = drawn.with_name(drawn.name.replace("drawn", "made"))
    return np.load(made), np.load(drawn, mmap_mode="r")
