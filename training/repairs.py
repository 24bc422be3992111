"""What the denoiser makes of known pictures: the decoder's last lesson.

A picture is a function of its words and of the twelve numbers in the noise. So for every prompt and
every noise the wanted picture can be drawn, and the decoder can learn to make it from what the
denoiser really gives, mistakes included: it repairs edges that the latents have only nearly right.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
from tqdm import tqdm

from training.coupling import read_normals
from training.dataset import Shard
from training.places import work_dir
from training.words import Wording, caption, draw_wording, plain_caption

SHARD_SIZE = 128
REPAIR_SEED = 31
BATCH = 16
LATENT_SHAPE = (24, 16, 16)


def sample_repairs(shards: int, workers: int) -> None:
    """Sample from the denoiser's averaged weights; what an older denoiser made is replaced."""
    for old in _folder().glob("*"):
        old.unlink()
    if workers < 2:
        for index in tqdm(range(shards), unit="shard"):
            _sample(index)
        return
    with mp.get_context("spawn").Pool(workers, initializer=_gently) as pool:
        list(tqdm(pool.imap_unordered(_sample, range(shards)), total=shards, unit="shard"))


def load_repairs() -> list[Shard]:
    """All that was sampled."""
    stems = sorted(path.with_suffix("") for path in _folder().glob("*.json"))
    return [
        Shard(
            latents=np.load(stem.with_suffix(".latents.npy"), mmap_mode="r"),
            normals=np.load(stem.with_suffix(".normals.npy")),
            wordings=[
                Wording(**each) for each in json.loads(stem.with_suffix(".json").read_text())
            ],
        )
        for stem in stems
    ]


def noise_of(index: int, count: int) -> torch.Tensor:
    """The noise of a shard, shape `(count, 24, 16, 16)`."""
    generator = torch.Generator().manual_seed(index)
    return torch.randn(count, *LATENT_SHAPE, generator=generator)


def _gently() -> None:
    torch.set_num_threads(1)
    os.nice(max(0, 19 - os.nice(0)))


@torch.no_grad()
def _sample(index: int) -> None:
    from training.export import DEFAULTS, build_pipeline

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
    stem = _folder() / f"{index:04d}"
    np.save(stem.with_suffix(".latents.npy"), np.concatenate(made).astype(np.float16))
    np.save(stem.with_suffix(".normals.npy"), read_normals(noise).numpy())
    stem.with_suffix(".json").write_text(json.dumps([asdict(wording) for wording in wordings]))


def _folder() -> Path:
    folder = work_dir() / "repairs"
    folder.mkdir(exist_ok=True)
    return folder
