"""The models of the benchmark: the bundled one, and one in the shape of Stable Diffusion 1.5.

The latter has random weights (speed does not depend on them) and fewer channels, so that a CPU can
paint with it: a UNet of the same four levels, the same VAE levels, CLIP's text encoder.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / "assets" / "model"


def build_sd_shaped(folder: Path) -> Path:
    """Write the Stable-Diffusion-1.5-shaped model into a folder and return it."""
    import diffusers
    from transformers import AutoTokenizer, CLIPTextConfig, CLIPTextModel

    tokenizer = AutoTokenizer.from_pretrained(BUNDLED / "tokenizer")
    text = CLIPTextConfig(
        vocab_size=max(len(tokenizer), 1000),
        hidden_size=384,
        intermediate_size=1536,
        num_attention_heads=6,
        num_hidden_layers=12,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    pipeline = diffusers.StableDiffusionPipeline(
        vae=diffusers.AutoencoderKL(
            block_out_channels=(64, 128, 256, 256),
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=2,
        ),
        unet=diffusers.UNet2DConditionModel(
            sample_size=64,
            block_out_channels=(96, 192, 384, 384),
            cross_attention_dim=384,
            attention_head_dim=8,
        ),
        text_encoder=CLIPTextModel(text),
        tokenizer=tokenizer,
        scheduler=diffusers.DDIMScheduler(clip_sample=False, set_alpha_to_one=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    for part in (pipeline.vae, pipeline.unet, pipeline.text_encoder):
        _fill(part)
    pipeline.save_pretrained(folder)
    return folder


def _fill(module: torch.nn.Module) -> None:
    """Give a module small random weights, so that nothing overflows and no value is zero."""
    generator = torch.Generator("cpu").manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim < 2:
                parameter.add_(noise * 0.01)
            else:
                parameter.copy_(noise / math.sqrt(parameter[0].numel()))


if __name__ == "__main__":
    build_sd_shaped(Path(sys.argv[1]))
