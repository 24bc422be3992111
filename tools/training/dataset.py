"""The drawn data set: shards of latents with what each picture shows, drawn once and kept.

Shard k is a function of k alone, so drawing can be interrupted and shared between processes. The
pictures themselves are not kept: `draw_many` draws any of them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from tools.training.composition import NUM_NORMALS
from tools.training.latents import LatentMap
from tools.training.places import work_dir
from tools.training.scenes import draw
from tools.training.words import Wording, draw_wording

SHARD_SIZE = 2048
DATA_SEED = 11
FIT_PICTURES = 1500


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Part of the data set."""

    latents: NDArray[np.float16]
    """Shape `(2048, 24, 16, 16)`, memory-mapped."""
    normals: NDArray[np.float32]
    """Shape `(2048, 12)`."""
    wordings: list[Wording]


def draw_many(
    seed: int | list[int],
    count: int,
    choose: Callable[[np.random.Generator], Wording] = draw_wording,
) -> tuple[NDArray[np.uint8], NDArray[np.float32], list[Wording]]:
    """Draw pictures.

    Args:
        seed: of the words and the numbers.
        count: how many.
        choose: draws what one of them shows.

    Returns:
        Pictures `(count, 256, 256, 3)`, normals `(count, 12)` and wordings.
    """
    rng = np.random.default_rng(seed)
    recipes = [(choose(rng), rng.normal(size=NUM_NORMALS).astype(np.float32)) for _ in range(count)]
    pictures = np.stack([draw(wording, normals) for wording, normals in recipes])
    return (
        pictures,
        np.stack([normals for _, normals in recipes]),
        [wording for wording, _ in recipes],
    )


def latent_map_path() -> Path:
    """Where the map is kept."""
    return work_dir() / "latent_map.safetensors"


def latent_map() -> LatentMap:
    """The map of this data set, fitted on the first call."""
    if not latent_map_path().exists():
        pictures, _, _ = draw_many(DATA_SEED, FIT_PICTURES)
        LatentMap.fit(pictures).save(latent_map_path())
    return LatentMap.load(latent_map_path())


def _shard_dir() -> Path:
    folder = work_dir() / "shards"
    folder.mkdir(exist_ok=True)
    return folder


def draw_shards(first: int, last: int) -> None:
    """Draw the shards `first` to `last - 1` that are not there yet."""
    to_latents, folder = latent_map(), _shard_dir()
    for index in tqdm(range(first, last), desc="drawing", unit="shard"):
        if (folder / f"{index:04d}.json").exists():
            continue
        pictures, normals, wordings = draw_many(1000 + index, SHARD_SIZE)
        np.save(folder / f"{index:04d}.latents.npy", to_latents.encode(pictures).astype(np.float16))
        np.save(folder / f"{index:04d}.normals.npy", normals)
        unfinished = folder / f"{index:04d}.tmp"
        unfinished.write_text(json.dumps([asdict(wording) for wording in wordings]))
        unfinished.rename(folder / f"{index:04d}.json")


def redraw_style(style: str, indices: Iterable[int]) -> None:
    """Draw one style's pictures again in shards that are there, after its painter was changed."""
    to_latents, folder = latent_map(), _shard_dir()
    for index in tqdm(indices, desc=style, unit="shard"):
        shard = load_shard(index)
        rows = [row for row, wording in enumerate(shard.wordings) if wording.style == style]
        pictures = np.stack([draw(shard.wordings[row], shard.normals[row]) for row in rows])
        latents = np.array(shard.latents)
        latents[rows] = to_latents.encode(pictures).astype(np.float16)
        unfinished = folder / f"{index:04d}.redrawn.npy"
        np.save(unfinished, latents)
        unfinished.rename(folder / f"{index:04d}.latents.npy")


def shard_indices() -> list[int]:
    """Which shards are there."""
    return sorted(int(path.stem) for path in _shard_dir().glob("*.json"))


def load_shard(index: int) -> Shard:
    """Open a shard."""
    stem = _shard_dir() / f"{index:04d}"
    return Shard(
        latents=np.load(stem.with_suffix(".latents.npy"), mmap_mode="r"),
        normals=np.load(stem.with_suffix(".normals.npy")),
        wordings=[Wording(**entry) for entry in json.loads(stem.with_suffix(".json").read_text())],
    )
