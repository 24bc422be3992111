"""How a pipeline reads prompts: brackets as weights, and each picture's words by themselves.

Weights: token embeddings are multiplied inside `encode_prompt`. As in AUTOMATIC1111, all embeddings
of a prompt are then rescaled to the mean that they had; there it is the mean of the whole batch, so
neighbours change a picture.

Alone: some families pad words to the longest of the batch, and other lengths run through other
kernels, so a neighbour's words would reach a picture. For these `encode_prompt` reads each text by
itself, and texts with a mask are padded to blocks of tokens. Only texts of equally many blocks
share a call, which is given `prompt_embeds`.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from seedgrid.core.prompts import Pieces, read_weights
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.libraries import replaced
from seedgrid.models.families import Family


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
    weighted = embeddings.clone()  # The same memory layout, and so the same kernels
    for number, (row, prompt) in enumerate(zip(embeddings, prompts, strict=True)):
        weights = token_weights(pipeline.tokenizer, read_weights(prompt), len(row))
        if any(weight != 1.0 for weight in weights):
            exact = row.float()  # (tokens, width)
            factors = torch.tensor(weights, dtype=torch.float32, device=row.device)
            scaled = exact * factors[:, None]
            weighted[number] = (scaled * (exact.mean() / scaled.mean())).to(row.dtype)
    return weighted


def token_weights(tokenizer: Any, pieces: Pieces, num_tokens: int) -> list[float]:
    """Return the weight of each token; a piece's tokens are found by tokenizing the text up to it.

    `tokenizer` is CLIP's, with a token before and after the words; above `num_tokens` is cut.
    """
    weights = [1.0] * num_tokens
    text_so_far, begin = "", 1
    for text, weight in pieces:
        text_so_far += text
        ids = tokenizer(text_so_far, truncation=True, max_length=num_tokens).input_ids
        end = len(ids) - 1
        weights[begin:end] = [weight] * max(0, end - begin)
        begin = max(begin, end)
        if begin == num_tokens - 1:  # The rest is truncated; tokenizing it would be quadratic.
            break
    return weights


@dataclass(frozen=True, kw_only=True)
class Words:
    """One recipe's words, as its text encoders read them."""

    # The result of `encode_prompt` by the prefix of the arguments' names, "" or "negative_":
    # embeddings (tokens, width), and a mask (tokens,) where the family has one
    texts: Mapping[str, tuple[torch.Tensor, ...]]
    lengths: tuple[int, ...]  # How many blocks of tokens each text fills


def read_alone(pipeline: Any, family: Family, recipes: Sequence[Recipe]) -> list[Words]:
    """Read each recipe's words by themselves, equal ones once."""
    read = cache(partial(_read, pipeline, family))
    return [
        read(recipe.prompt, family.left_out(recipe) if family.needs_negative(recipe) else None)
        for recipe in recipes
    ]


def words_together(words: Sequence[Words], family: Family) -> dict[str, Any]:
    """Return the arguments with the words of one call; all are of equal `lengths`."""
    arguments: dict[str, Any] = {}
    for prefix in words[0].texts:
        for place, name in enumerate(family.alone):
            rows = [each.texts[prefix][place] for each in words]
            arguments[prefix + name] = rows if family.lists_words else torch.stack(rows)
    if len(family.alone) > 1:
        # Otherwise what is longer than the default is cut, and a mask without zeros is dropped.
        arguments["max_sequence_length"] = max(
            value.shape[1] for value in arguments.values() if isinstance(value, torch.Tensor)
        )
    return arguments


def _read(pipeline: Any, family: Family, prompt: str, negative: str | None) -> Words:
    """Read one recipe's words as the pipeline's own call does for one picture."""
    parameters = inspect.signature(pipeline.encode_prompt).parameters
    default = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    more: dict[str, Any] = {"device": pipeline._execution_device}
    if default is not None and "max_sequence_length" in parameters:
        more["max_sequence_length"] = default.default
    reads_both = "negative_prompt" in parameters
    if reads_both:
        more["do_classifier_free_guidance"] = negative is not None
    if reads_both and negative is not None:
        more["negative_prompt"] = [negative]
    with torch.no_grad():
        # New lists: Z-Image writes its chat template into its arguments.
        encoded = _as_tuple(pipeline.encode_prompt(prompt=[prompt], **more))
        if negative is not None and not reads_both:
            encoded += _as_tuple(pipeline.encode_prompt(prompt=[negative], **more))
    number = len(family.alone)
    texts, lengths = {}, []
    for place, prefix in enumerate(("",) if negative is None else ("", "negative_")):
        rows = encoded[place * number : (place + 1) * number]
        texts[prefix], blocks = _in_blocks(rows, family.word_block)
        lengths.append(blocks)
    return Words(texts=texts, lengths=tuple(lengths))


def _as_tuple(encoded: Any) -> tuple[Any, ...]:
    return encoded if isinstance(encoded, tuple) else (encoded,)


def _in_blocks(encoded: tuple[Any, ...], block: int) -> tuple[tuple[torch.Tensor, ...], int]:
    """Return one text's rows, and how many blocks of tokens they fill; with a mask, padded."""
    embeddings = encoded[0][0]  # (tokens, width)
    if len(encoded) == 1:
        return (embeddings,), -(-len(embeddings) // block)
    mask = encoded[1]
    mask = embeddings.new_ones(len(embeddings), dtype=torch.long) if mask is None else mask[0]
    # At least one token of padding: without zeros a mask is dropped, and another kernel runs.
    blocks = int(mask.sum()) // block + (block > 1)
    padded = max(len(embeddings), blocks * block)
    return (_longer(embeddings, padded), _longer(mask, padded)), blocks


def _longer(rows: torch.Tensor, length: int) -> torch.Tensor:
    return torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])
