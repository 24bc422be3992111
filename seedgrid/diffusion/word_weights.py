"""Prompt weighting: token embeddings are multiplied by their weights inside `encode_prompt`.

As in AUTOMATIC1111, all embeddings of a prompt are then rescaled to the mean that they had. There
it is the mean of the whole batch, so neighbours change a picture; here each picture has its own.

    with weighted_words(pipeline, cells):
        pipeline(...)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from seedgrid.core.prompts import Pieces, read_weights
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.patch import replaced


@contextmanager
def weighted_words(pipeline: Any, cells: Sequence[Recipe]) -> Iterator[None]:
    """Weigh the words where the pipeline encodes them."""
    if not cells[0].weights:
        yield
        return
    original = pipeline.encode_prompt

    def encode_prompt(*args: Any, **kwargs: Any) -> Any:
        positive, negative, *pooled = original(*args, **kwargs)
        positive = _weighted(pipeline, positive, [cell.prompt for cell in cells])
        if negative is not None and any(cell.negative_prompt for cell in cells):
            negative = _weighted(pipeline, negative, [cell.negative_prompt for cell in cells])
        return (positive, negative, *pooled)

    with replaced(pipeline, "encode_prompt", encode_prompt):
        yield


def _weighted(pipeline: Any, embeddings: torch.Tensor, prompts: Sequence[str]) -> torch.Tensor:
    """Weigh the rows of a batch, each by itself."""
    weighted = torch.empty_like(embeddings)  # The same memory layout, and so the same kernels.
    for number, (row, prompt) in enumerate(zip(embeddings, prompts, strict=True)):
        weights = token_weights(pipeline.tokenizer, read_weights(prompt), len(row))
        weighted[number] = _weighted_row(row, weights)
    return weighted


def _weighted_row(row: torch.Tensor, weights: Sequence[float]) -> torch.Tensor:
    if all(weight == 1.0 for weight in weights):
        return row
    exact = row.float()
    factors = torch.tensor(weights, dtype=torch.float32, device=row.device)
    scaled = exact * factors[:, None]  # (tokens, width)
    return (scaled * (exact.mean() / scaled.mean())).to(row.dtype)


def token_weights(tokenizer: Any, pieces: Pieces, num_tokens: int) -> list[float]:
    """Return the weight of each token; a piece's tokens are found by tokenizing the text up to it.

    Args:
        tokenizer: CLIP's, with one token before and one after the words.
        pieces: The words.
        num_tokens: Of the embedding; what is longer is truncated, as by the pipeline.
    """
    weights = [1.0] * num_tokens
    said, begin = "", 1
    for text, weight in pieces:
        said += text
        ids = tokenizer(said, truncation=True, max_length=num_tokens).input_ids
        end = len(ids) - 1
        weights[begin:end] = [weight] * max(0, end - begin)
        begin = max(begin, end)
        if begin == num_tokens - 1:  # The rest is truncated; tokenizing it too is quadratic.
            break
    return weights
