"""Sample the denoiser on prompts and noise whose wanted picture is known, shard by shard."""

from __future__ import annotations

import os

import numpy as np
import torch
import torch.multiprocessing as mp
from tqdm import tqdm

from training.coupling import read_normals
from training.dataset import Shard
from training.export import DEFAULTS, build_pipeline
from training.latents import LATENT_CHANNELS, LATENT_PX
from training.repairs import clear_repairs, save_repairs
from training.words import caption, draw_wording, plain_caption

SHARD_SIZE = 128
REPAIR_SEED = 31
BATCH = 16
LATENT_SHAPE = (LATENT_CHANNELS, LATENT_PX, LATENT_PX)


def sample_repairs(shards: int, workers: int) -> None:
    """Sample from the weights that would be exported; what an older denoiser made is replaced."""
    clear_repairs()
    if workers < 2:
        for index in tqdm(range(shards), unit="shard"):
            _sample(index)
        return
    with mp.get_context("spawn").Pool(workers, initializer=_gently) as pool:
        list(tqdm(pool.imap_unordered(_sample, range(shards)), total=shards, unit="shard"))


def noise_of(index: int, count: int) -> torch.Tensor:
    """The noise of a shard, shape `(count, 24, 16, 16)`."""
    generator = torch.Generator().manual_seed(index)
    return torch.randn(count, *LATENT_SHAPE, generator=generator)


def _gently() -> None:
    torch.set_num_threads(1)
    os.nice(max(0, 19 - os.nice(0)))


@torch.no_grad()
def _sample(index: int) -> None:
    pipeline = build_pipeline()
    pipeline.set_progress_bar_config(disable=True)
    rng = np.random.default_rng([REPAIR_SEED, index])
    wordings = [draw_wording(rng) for _ in range(SHARD_SIZE)]
    prompts = [plain_caption(w) if rng.random() < 0.5 else caption(w, rng) for w in wordings]
    noise = noise_of(index, SHARD_SIZE)
    made = []
    for start in range(0, SHARD_SIZE, BATCH):
        part = slice(start, start + BATCH)
        output = pipeline(
            prompts[part],
            latents=noise[part],
            num_inference_steps=DEFAULTS["num_inference_steps"],
            guidance_scale=DEFAULTS["guidance_scale"],
            output_type="latent",
        )
        made.append(output.images.numpy())
    normals = read_normals(noise).numpy()
    save_repairs(index, Shard(latents=np.concatenate(made), normals=normals, wordings=wordings))
