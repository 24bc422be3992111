"""Go on from the weights that ship, where the cache of the machine that made them is not at hand.

adopt(MODEL_DIR)  # then: python -m tools.training polish
"""

from __future__ import annotations

from pathlib import Path

from diffusers import DiffusionPipeline

from tools.training import decoder, denoiser
from tools.training.autoencoder import read_encoder
from tools.training.checkpoints import save_checkpoint
from tools.training.dataset import latent_map_path
from tools.training.tokenizer import tokenizer_path

SEEN = 470_000
"""Pictures that the shipped denoiser has seen before it was polished."""


def adopt(folder: Path) -> list[Path]:
    """Put the parts of a model's folder into the cache, each where nothing is yet.

    The optimizers' states are not in the folder: they start cold.

    Returns:
        What was written.
    """
    pipeline = DiffusionPipeline.from_pretrained(str(folder))
    networks = {
        **{f"text_encoder.{k}": v for k, v in pipeline.text_encoder.state_dict().items()},
        **{f"unet.{k}": v for k, v in pipeline.unet.state_dict().items()},
    }
    weights = pipeline.vae.decoder.state_dict()
    writers = {
        latent_map_path(): lambda path: read_encoder(pipeline.vae).save(path),
        tokenizer_path(): pipeline.tokenizer.save_pretrained,
        denoiser.checkpoint_path(): lambda path: save_checkpoint(
            path, weights=networks, averages=networks, optimizer={}, steps=0, seen=SEEN
        ),
        decoder.checkpoint_path(): lambda path: save_checkpoint(
            path, weights=weights, averages=weights, optimizer={}, steps=0
        ),
    }
    missing = [path for path in writers if not path.exists()]
    for path in missing:
        writers[path](path)
    return missing
