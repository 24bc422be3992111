"""Train the decoder: from the linear latents back to the full picture at 256 px.

Pictures are drawn as needed, since drawing is cheaper than a training step. In its last lesson most
latents are the denoiser's (`made.py`), and the decoder learns to repair them.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tqdm import tqdm

from tools.training.autoencoder import build_autoencoder
from tools.training.checkpoints import note, part, save_checkpoint
from tools.training.dataset import draw_many, latent_map
from tools.training.losses import picture_loss, psnr
from tools.training.made import Maker
from tools.training.optimizer import MuonAdam, matrix_names, rate_share
from tools.training.places import work_dir

CROP = 8
EMA_DECAY = 0.998
SAVE_EVERY_S = 120


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how fast."""

    steps: int = 5000
    learning_rate: float = 1e-3
    cooldown: float = 1.0
    pictures_per_step: int = 4
    crops_per_picture: int = 2
    latent_noise: float = 0.05
    made_share: float = 0.0
    """How often a step's latents are the denoiser's."""
    seed: int = 17


def checkpoint_path() -> Path:
    """Where the decoder stands."""
    return work_dir() / "decoder.safetensors"


def load_autoencoder() -> torch.nn.Module:
    """The autoencoder with the averaged decoder of the last checkpoint, or an untrained one."""
    model = build_autoencoder(latent_map(), torch.Generator().manual_seed(2))
    if checkpoint_path().exists():
        model.decoder.load_state_dict(part(load_file(checkpoint_path()), "ema"))
    return model.eval()


def crops(
    latents: torch.Tensor, pictures: torch.Tensor, per_picture: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut matching pieces out of latents `(N, 24, 16, 16)` and pictures `(N, 3, 256, 256)`."""
    small, large = [], []
    for index in range(len(latents)):
        for _ in range(per_picture):
            row, column = (int(v) for v in rng.integers(0, 16 - CROP + 1, 2))
            small.append(latents[index, :, row : row + CROP, column : column + CROP])
            top, left, size = row * 16, column * 16, CROP * 16
            large.append(pictures[index, :, top : top + size, left : left + size])
    return torch.stack(small), torch.stack(large)


class DecoderTraining:
    """The training and its state."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.map = latent_map()
        self.model = build_autoencoder(self.map, torch.Generator().manual_seed(2)).decoder
        self.model = self.model.to(self.device, memory_format=torch.channels_last)
        self.optimizer = MuonAdam(self.model.named_parameters(), matrix_names(self.model))
        self.ema = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.maker = Maker() if settings.made_share else None
        self.stop = False
        if checkpoint_path().exists():
            self._resume()

    def _resume(self) -> None:
        stored = load_file(checkpoint_path(), device=self.device)
        self.model.load_state_dict(part(stored, "model"))
        self.ema = part(stored, "ema")
        self.optimizer.restore(part(stored, "opt"))
        self.optimizer.step_count = int(stored["steps"])

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Latents and pictures drawn for one step, as crops."""
        settings, rng = self.settings, np.random.default_rng([self.settings.seed, step])
        seed, count = [settings.seed, step], settings.pictures_per_step
        if self.maker and rng.random() < settings.made_share:
            pictures, latents = self.maker.make(seed, count)
        else:
            pictures, _, _ = draw_many(seed, count)
            latents = self.map.encode(pictures)
        noise = rng.normal(size=latents.shape).astype(np.float32)
        given = torch.from_numpy(latents + noise * settings.latent_noise * float(rng.random()))
        wanted = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
        return crops(given.float(), wanted, settings.crops_per_picture, rng)

    def run(self) -> None:
        """Train to the last step, or to SIGTERM."""
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop", True))
        saved_at, losses = time.monotonic(), []
        bar = tqdm(total=self.settings.steps, initial=self.optimizer.step_count, unit="step")
        while self.optimizer.step_count < self.settings.steps and not self.stop:
            losses.append(self._step(self.optimizer.step_count))
            bar.update()
            if len(losses) == 50:
                self._log(losses, bar)
                losses = []
            if time.monotonic() - saved_at > SAVE_EVERY_S:
                self.save()
                saved_at = time.monotonic()
        self.save()

    def _step(self, step: int) -> tuple[float, float]:
        latents, wanted = self.batch(step)
        latents = latents.to(self.device, memory_format=torch.channels_last)
        wanted = wanted.to(self.device)
        made = self.model(latents)
        loss = picture_loss(made, wanted)
        loss.backward()
        left = 1 - step / self.settings.steps
        share = rate_share(step, left, warm_steps=50, cooldown=self.settings.cooldown)
        self.optimizer.step(self.settings.learning_rate * share, weight_decay=0.0)
        decay = min(EMA_DECAY, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                self.ema[name].lerp_(value, 1 - decay)
        return float(loss.detach()), psnr(made.detach(), wanted)

    def _log(self, losses: list[tuple[float, float]], bar: tqdm) -> None:
        loss, decibels = (round(float(v), 4) for v in np.mean(losses, axis=0))
        bar.set_postfix(loss=loss, psnr=decibels)
        note("decoder", step=self.optimizer.step_count, loss=loss, psnr=decibels)

    def save(self) -> None:
        """Write where the training stands."""
        save_checkpoint(
            checkpoint_path(),
            weights=self.model.state_dict(),
            averages=self.ema,
            optimizer=self.optimizer.state,
            steps=self.optimizer.step_count,
        )


def train(settings: Settings) -> None:
    """Train the decoder from where it stands."""
    DecoderTraining(settings).run()
