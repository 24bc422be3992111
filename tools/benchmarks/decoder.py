"""The share of decoding in a live batch, and what a tiny decoder gains, in turns.

    python -m tools.benchmarks.decoder --rounds 3

The model has the shape of Stable Diffusion 1.5 with fewer channels, and random weights; the tiny
decoder has its real size. One step without guidance, four pictures of 512 px.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch

from tools.benchmarks.models import build_sd_shaped

_PX: Final = 512


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.decoder", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    import diffusers

    with tempfile.TemporaryDirectory() as scratch:
        model = build_sd_shaped(Path(scratch))
        pipeline = diffusers.StableDiffusionPipeline.from_pretrained(model)
    pipeline.set_progress_bar_config(disable=True)
    decoders = {"own": pipeline.vae, "tiny": diffusers.AutoencoderTiny()}
    took: dict[str, list[float]] = {"own": [], "tiny": [], "own decoding": [], "tiny decoding": []}
    for _ in range(rounds + 1):  # The first one is for warming up.
        for name, decoder in decoders.items():
            pipeline.vae = decoder
            took[name].append(_batch_s(pipeline))
            took[f"{name} decoding"].append(_decoding_s(decoder))
    found = {name: median(times[1:]) for name, times in took.items()}
    print(" · ".join(f"{name} {seconds:.1f} s" for name, seconds in found.items()))
    print(f"decoding is {found['own decoding'] / found['own']:.0%} of a batch; the tiny decoder's")
    print(f"batch is {found['own'] / found['tiny']:.2f} times as fast")


def _batch_s(pipeline: Any) -> float:
    generators = [torch.Generator("cpu").manual_seed(seed) for seed in range(4)]
    sizes = {"width": _PX, "height": _PX, "num_inference_steps": 1, "guidance_scale": 1.0}
    start_s = time.perf_counter()
    pipeline(["a lighthouse"] * 4, generator=generators, output_type="pt", **sizes)
    return time.perf_counter() - start_s


def _decoding_s(decoder: Any) -> float:
    latents = torch.randn(4, 4, _PX // 8, _PX // 8, generator=torch.Generator("cpu").manual_seed(0))
    start_s = time.perf_counter()
    with torch.no_grad():
        decoder.decode(latents)
    return time.perf_counter() - start_s


if __name__ == "__main__":
    main()
