"""Go on from the weights that ship, where the cache of the machine that made them is not at hand.

Words of subjects that the model lacks become tokens of their own on the way.

    adopt(MODEL_DIR)  # then: python -m tools.training polish
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import torch
from diffusers import DiffusionPipeline
from transformers import CLIPTokenizer

from tools.training import decoder, denoiser
from tools.training.autoencoder import read_encoder
from tools.training.checkpoints import save_checkpoint
from tools.training.dataset import latent_map_path
from tools.training.tokenizer import grown, tokenizer_path, words_in
from tools.training.words import SUBJECT_WORDS

SEEN = 470_000
"""Pictures that the shipped denoiser has seen before it was polished."""

GROWTH_SEED = 7
GROWTH_NOISE = 0.5
"""Of a new word's row: its noise, in spreads of the known words' rows about their mean."""


def adopt(folder: Path) -> list[Path]:
    """Put the parts of a model's folder into the cache, each where nothing is yet.

    The optimizers' states are not in the folder: they start cold.

    Returns:
        What was written.
    """
    pipeline = DiffusionPipeline.from_pretrained(str(folder))
    known = pipeline.tokenizer
    words = grown(known, words_in(chain.from_iterable(SUBJECT_WORDS.values())))
    networks = {
        **{f"text_encoder.{k}": v for k, v in pipeline.text_encoder.state_dict().items()},
        **{f"unet.{k}": v for k, v in pipeline.unet.state_dict().items()},
    }
    rows = next(name for name in networks if name.endswith("token_embedding.weight"))
    networks[rows] = grown_rows(networks[rows], known, words)
    weights = pipeline.vae.decoder.state_dict()
    writers = {
        latent_map_path(): lambda path: read_encoder(pipeline.vae).save(path),
        tokenizer_path(): words.save_pretrained,
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


def grown_rows(rows: torch.Tensor, old: CLIPTokenizer, new: CLIPTokenizer) -> torch.Tensor:
    """The token embedding for a tokenizer that was grown by words of subjects.

    A subject that was unknown starts near the mean of those that were known, and all its words
    start alike; a piece on the way to a word starts between the two that it is made of.

    Args:
        rows: of the old tokens, shape `(tokens, 128)`.
        old: the tokenizer that they belong to.
        new: the grown one.

    Returns:
        Shape `(more tokens, 128)`, the old rows first and unchanged.
    """
    vocab, generator = new.get_vocab(), torch.Generator().manual_seed(GROWTH_SEED)
    result = torch.cat([rows, torch.zeros(len(new) - len(old), rows.shape[1])])
    for left, right in json.loads(new.backend_tokenizer.to_str())["model"]["merges"]:
        if vocab[left + right] >= len(old):
            result[vocab[left + right]] = (result[vocab[left]] + result[vocab[right]]) / 2
    named = [new.convert_tokens_to_ids(_whole(texts)) for texts in SUBJECT_WORDS.values()]
    known = rows[[tokens[0] for tokens in named if tokens[0] < len(old)]]
    for first, *others in named:
        if first >= len(old):
            noise = torch.randn(rows.shape[1], generator=generator)
            result[first] = known.mean(0) + GROWTH_NOISE * known.std(0) * noise
        result[[other for other in others if other >= len(old)]] = result[first].clone()
    return result


def _whole(texts: tuple[str, ...]) -> list[str]:
    """The tokens of a subject's words, that of its first word first."""
    return [f"{word}</w>" for word in words_in(texts)]
