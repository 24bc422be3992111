"""Parts that the small pipelines of the tests are made of, with seeded random weights."""

from __future__ import annotations

import math
import string
from typing import Any

import diffusers
import torch
import transformers

from seedgrid.portable.layer_rules import normal

VOCABULARY = string.ascii_lowercase + string.digits + ",.!'- "

BETAS = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
"""The noise of Stable Diffusion's kind of schedule."""

SMALL: dict[str, Any] = {"num_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2}
SMALL_DOUBLE = SMALL | {"num_single_layers": 1}
"""The size of a transformer with one block, and with one of each of two kinds."""

OF_SDXL: dict[str, Any] = {
    "attention_head_dim": (2, 4),
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 8,
    "transformer_layers_per_block": (1, 2),
}
"""What SDXL's denoiser has and Stable Diffusion's has not; Kolors' has it, too."""


def flow_euler(**changes: Any) -> Any:
    """Make the scheduler of flows."""
    return diffusers.FlowMatchEulerDiscreteScheduler(**({"shift": 3.0} | changes))


def seeded(module: Any, seed: int) -> Any:
    """Fill a module with random weights from one generator and put it in evaluation mode."""
    generator = torch.Generator("cpu").manual_seed(seed)
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            noise = normal(parameter.shape, generator)  # equal weights on every processor
            if parameter.ndim < 2:
                parameter.copy_(noise * 0.05)
            else:
                parameter.copy_(noise / math.sqrt(parameter[0].numel()))
        for child in module.modules():
            if "Norm" in type(child).__name__ and getattr(child, "weight", None) is not None:
                child.weight.add_(1)
    return module.eval()


def clip_tokenizer() -> Any:
    """Make a CLIP tokenizer that spells words letter by letter."""
    symbols = [*VOCABULARY.strip(), *(f"{letter}</w>" for letter in VOCABULARY.strip())]
    words = ["<|startoftext|>", "<|endoftext|>", *symbols]
    return transformers.CLIPTokenizer(
        vocab={word: number for number, word in enumerate(words)}, merges=[], model_max_length=77
    )


def t5_tokenizer() -> Any:
    """Make a T5 tokenizer that spells words letter by letter."""
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    letters = [(letter, -3.0) for letter in VOCABULARY.strip()]
    return transformers.T5Tokenizer(vocab=special + letters, extra_ids=0, model_max_length=77)


def clip_text(seed: int, *, projection: bool = False, max_tokens: int = 77) -> Any:
    """Make a CLIP text encoder of width 32."""
    config = transformers.CLIPTextConfig(
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        hidden_size=32,
        intermediate_size=64,
        max_position_embeddings=max_tokens,
        num_attention_heads=4,
        num_hidden_layers=2,
        projection_dim=32,
        vocab_size=len(clip_tokenizer()),
    )
    cls = transformers.CLIPTextModelWithProjection if projection else transformers.CLIPTextModel
    return seeded(cls(config), seed)


def t5_encoder(seed: int, *, width: int = 32, kind: str = "T5", **changes: int) -> Any:
    """Make a T5 encoder, or a UMT5."""
    sizes = {"vocab_size": len(t5_tokenizer()), "num_layers": 2} | changes
    config = getattr(transformers, f"{kind}Config")(
        d_model=width, d_kv=8, d_ff=64, num_heads=4, **sizes
    )
    return seeded(getattr(transformers, f"{kind}EncoderModel")(config), seed)


def vae(
    seed: int,
    *,
    channels: int = 4,
    shift: float | None = None,
    widths: tuple[int, ...] = (16, 32),
    kind: str = "AutoencoderKL",
    **changes: Any,
) -> Any:
    """Make an AutoencoderKL; each width after the first halves the size."""
    return seeded(
        getattr(diffusers, kind)(
            block_out_channels=widths,
            down_block_types=("DownEncoderBlock2D",) * len(widths),
            up_block_types=("UpDecoderBlock2D",) * len(widths),
            latent_channels=channels,
            norm_num_groups=widths[0] // 2,
            sample_size=64,
            **({} if shift is None else {"shift_factor": shift}),
            **changes,
        ),
        seed,
    )


def text_unet(seed: int, **changes: Any) -> Any:
    """Make a UNet with cross-attention."""
    config: dict[str, Any] = {
        "block_out_channels": (16, 32),
        "layers_per_block": 1,
        "sample_size": 32,
        "in_channels": 4,
        "out_channels": 4,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 32,
        "norm_num_groups": 8,
        "attention_head_dim": 4,
    }
    return seeded(diffusers.UNet2DConditionModel(**(config | changes)), seed)
