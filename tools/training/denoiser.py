"""Train the denoiser and its text encoder on the cached latents.

On a CPU two single-thread processes work on the same shared weights without locks (Hogwild: Recht
et al. 2011, arXiv:1106.5730), which wastes nothing when one of them has to wait for a busy core;
on a GPU one process works with larger batches. SIGTERM saves and stops; the next start goes on.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
from diffusers.models.attention_processor import AttnProcessor
from safetensors.torch import load_file
from tqdm import tqdm

from tools.training.batches import LESSONS, Batches
from tools.training.checkpoints import note, part, save_checkpoint
from tools.training.composition import NUM_NORMALS
from tools.training.coupling import write_normals
from tools.training.networks import Denoiser, initialise, make_scheduler
from tools.training.optimizer import MuonAdam, autocast, matrix_names, rate_share
from tools.training.places import work_dir
from tools.training.reading import carry_numbers, freeze_reading, teach_places, teach_reading
from tools.training.tokenizer import tokenizer

EMA_DECAY = 0.995
MAX_WEIGHT = 4.0
TERMINAL_SHARE = 0.4
SAVE_EVERY_S = 150
LOG_EVERY = 40


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how fast."""

    pictures: int = 400_000
    minutes: float = float("inf")
    batch_size: int = 16
    learning_rate: float = 2e-3
    cooldown: float = 0.9
    workers: int = 2
    device: str = "cpu"
    seed: int = 3


def build(is_fresh: bool = True) -> Denoiser:
    """A denoiser, its start a function of a fixed seed; `is_fresh` costs a few seconds more."""
    words = tokenizer()
    model = Denoiser(len(words), words.eos_token_id, words.bos_token_id)
    generator = torch.Generator().manual_seed(1)
    initialise(model, generator)
    if is_fresh:
        teach_places(model, generator)
        # One in each group of eight channels, so that a norm can be steadied (steadying.py).
        carry_numbers(model, range(NUM_NORMALS), range(0, 8 * NUM_NORMALS, 8))
        teach_reading(model, generator)
    freeze_reading(model)
    return model


def checkpoint_path() -> Path:
    """Where the training stands."""
    return work_dir() / "denoiser.safetensors"


def load_ema() -> Denoiser:
    """The averaged weights of the last checkpoint."""
    model = build(is_fresh=False)
    stored = load_file(checkpoint_path())
    model.load_state_dict(part(stored, "ema"))
    return model.eval()


def velocity_loss(
    model: Denoiser,
    batch: tuple[torch.Tensor, ...],
    alphas: torch.Tensor,
    generator: torch.Generator,
    terminal_share: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weighted loss of a batch, and the part of it at pure noise.

    The loss is on the clean latents, with weight SNR + 1 up to a limit: low noise, where all is
    known, does not take the network's attention.
    """
    latents, normals, ids = batch
    size, device = len(latents), latents.device
    draws = torch.rand(size, generator=generator)
    spread = (torch.rand(size, generator=generator) ** 1.2 * 999).long()
    times = torch.where(draws < terminal_share, torch.full_like(spread, 999), 999 - spread).to(
        device
    )
    noise = torch.randn(latents.shape, generator=generator).to(device)
    noise = write_normals(noise, normals)
    signal_rate = alphas[times].sqrt()[:, None, None, None]
    noise_rate = (1 - alphas[times]).sqrt()[:, None, None, None]
    noisy = (signal_rate * latents + noise_rate * noise).contiguous(
        memory_format=torch.channels_last
    )
    target = signal_rate * noise - noise_rate * latents
    with autocast(device.type):
        predicted = model(noisy, times, ids)
    errors = (predicted.float() - target).square().mean((1, 2, 3))
    weights = (MAX_WEIGHT * noise_rate.flatten().square()).clamp(max=1.0)
    terminal = errors[times == 999]
    return (errors * weights).mean(), terminal.mean().detach()


class Worker:
    """One training process; number 0 also averages, logs and saves."""

    def __init__(
        self, rank: int, settings: Settings, model: Denoiser, seen: torch.Tensor, stop: torch.Tensor
    ) -> None:
        self.rank, self.settings, self.model = rank, settings, model
        self.seen, self.stop = seen, stop
        self.device = next(model.parameters()).device
        self.alphas = make_scheduler().alphas_cumprod.to(self.device)
        entropy = [settings.seed, rank, int(seen)]
        self.generator = torch.Generator().manual_seed(
            int(np.random.SeedSequence(entropy).generate_state(1)[0])
        )
        self.batches = Batches(tokenizer(), np.random.default_rng(entropy))
        self.optimizer = MuonAdam(model.named_parameters(), matrix_names(model))
        self.ema = {name: p.detach().clone() for name, p in model.state_dict().items()}
        self._resume()

    def _resume(self) -> None:
        if not checkpoint_path().exists():
            return
        stored = load_file(checkpoint_path(), device=str(self.device))
        for name in self.ema:
            self.ema[name] = stored[f"ema.{name}"]
        self.optimizer.restore(part(stored, "opt"))
        self.optimizer.step_count = int(stored["steps"])

    def run(self) -> None:
        """Train until the pictures or the minutes are used up or a stop is asked for."""
        settings, started = self.settings, time.monotonic()
        saved_at, losses = started, []
        bar = tqdm(
            total=settings.pictures, initial=int(self.seen), unit="pic", disable=self.rank != 0
        )
        elapsed_min = 0.0
        while int(self.seen) < settings.pictures and elapsed_min < settings.minutes:
            losses.append(self._step(elapsed_min))
            elapsed_min = (time.monotonic() - started) / 60
            if int(self.stop):
                break
            if self.rank != 0:
                continue
            self._average()
            bar.n = int(self.seen)
            if self.optimizer.step_count % LOG_EVERY == 0:
                self._log(np.nanmean(losses[-LOG_EVERY:], axis=0), bar)
            if time.monotonic() - saved_at > SAVE_EVERY_S:
                self.save()
                saved_at = time.monotonic()
        if self.rank == 0:
            self.save()

    def _step(self, elapsed_min: float) -> tuple[float, float]:
        settings, steps = self.settings, self.optimizer.step_count
        if steps % 200 == 0:
            self.batches.refresh()
        drawn = self.batches.draw(settings.batch_size, int(self.seen))
        batch = tuple(part.to(self.device) for part in drawn)
        loss, terminal = velocity_loss(
            self.model, batch, self.alphas, self.generator, self._share()
        )
        loss.backward()
        used = max(int(self.seen) / settings.pictures, elapsed_min / settings.minutes)
        share = rate_share(steps, 1 - used, warm_steps=60, cooldown=settings.cooldown)
        self.optimizer.step(settings.learning_rate * share)
        self.seen += settings.batch_size
        return float(loss.detach()), float(terminal)

    def _share(self) -> float:
        return 1.0 if int(self.seen) < LESSONS[0] else TERMINAL_SHARE

    @torch.no_grad()
    def _average(self) -> None:
        decay = min(EMA_DECAY, (1 + self.optimizer.step_count) / (10 + self.optimizer.step_count))
        for name, value in self.model.state_dict().items():
            if value.is_floating_point():
                self.ema[name].lerp_(value, 1 - decay)

    def _log(self, means: np.ndarray, bar: tqdm) -> None:
        loss, terminal = (round(float(mean), 5) for mean in means)
        bar.set_postfix(loss=loss, terminal=terminal)
        note("denoiser", pictures=int(self.seen), loss=loss, terminal=terminal)

    def save(self) -> None:
        """Write where the training stands."""
        save_checkpoint(
            checkpoint_path(),
            weights=self.model.state_dict(),
            averages=self.ema,
            optimizer=self.optimizer.state,
            steps=self.optimizer.step_count,
            seen=int(self.seen),
        )


def _work(
    rank: int, settings: Settings, model: Denoiser, seen: torch.Tensor, stop: torch.Tensor
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if model.unet.device.type == "cpu":
        torch.set_num_threads(1)
        os.nice(max(0, 19 - os.nice(0)))
    Worker(rank, settings, model, seen, stop).run()


def train(settings: Settings) -> None:
    """Train, from the last checkpoint where there is one."""
    model = build(is_fresh=not checkpoint_path().exists())
    seen, stop = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    if checkpoint_path().exists():
        stored = load_file(checkpoint_path())
        model.load_state_dict(part(stored, "model"))
        seen += int(stored["seen"])
    model = model.to(settings.device, memory_format=torch.channels_last)
    # Torch's fused attention is slow backwards on a CPU: the plain one trains a third faster.
    model.unet.set_attn_processor(AttnProcessor())
    if settings.device != "cpu":
        _work(0, settings, model, seen, stop)
        return
    model.share_memory()
    for shared in (seen, stop):
        shared.share_memory_()

    def ask_to_stop(*_: object) -> None:
        stop.fill_(1)

    signal.signal(signal.SIGTERM, ask_to_stop)
    signal.signal(signal.SIGINT, ask_to_stop)
    context = mp.get_context("spawn")
    processes = [
        context.Process(target=_work, args=(rank, settings, model, seen, stop))
        for rank in range(settings.workers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
