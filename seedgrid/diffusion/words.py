"""How prompts become embeddings: with weights in brackets, and for some families one by one.

Weights: the token embeddings that `encode_prompt` returns are multiplied by their weights. As in
AUTOMATIC1111, all embeddings of a prompt are then rescaled to their previous mean. AUTOMATIC1111
takes the mean over the whole batch, so neighbours change a picture; here each prompt has its own.

One by one: some families pad prompts to the longest one of the batch. Tensors of another length run
through other kernels, so the bits of a picture would depend on its neighbours' prompts. For these
families (`Family.encodes_separately`) `encode_prompt` is called for each prompt by itself, and
prompts with an attention mask are padded to whole blocks of tokens. The pipeline's call is given
`prompt_embeds` instead of prompts; only prompts of equally many blocks share a call.
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
def weighted_prompts(pipeline: Any, cells: Sequence[Recipe]) -> Iterator[None]:
    """Apply the weights in the recipes' prompts to what the pipeline's `encode_prompt` returns."""
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
    """Multiply the embeddings of each row of a batch by the weights in its prompt."""
    weighted = embeddings.clone()  # Keeps the memory layout: torch chooses kernels by it
    for index, (row, prompt) in enumerate(zip(embeddings, prompts, strict=True)):
        weights = token_weights(pipeline.tokenizer, read_weights(prompt), len(row))
        if any(weight != 1.0 for weight in weights):
            exact = row.float()  # (tokens, width)
            factors = torch.tensor(weights, dtype=torch.float32, device=row.device)
            scaled = exact * factors[:, None]
            weighted[index] = (scaled * (exact.mean() / scaled.mean())).to(row.dtype)
    return weighted


def token_weights(tokenizer: Any, pieces: Pieces, num_tokens: int) -> list[float]:
    """Return the weights of a prompt's first `num_tokens` tokens; each piece has one weight.

    The text up to the end of each piece is tokenized, to find where the piece's tokens end.
    `tokenizer` is CLIP's, which adds a token before and after the words.
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
class EncodedPrompts:
    """One recipe's prompt and, with guidance, its negative prompt, encoded."""

    # By the prefix of the arguments' names, "" or "negative_": embeddings (tokens, width), and an
    # attention mask (tokens,) where the family has one
    results: Mapping[str, tuple[torch.Tensor, ...]]
    num_blocks: tuple[int, ...]  # How many blocks of tokens each of these prompts fills


def encode_each(pipeline: Any, family: Family, recipes: Sequence[Recipe]) -> list[EncodedPrompts]:
    """Encode each recipe's prompts in a separate call; the same prompts are encoded only once."""
    encode = cache(partial(_encode, pipeline, family))
    needs, negative = family.needs_negative, family.negative_prompt_of
    return [encode(each.prompt, negative(each) if needs(each) else None) for each in recipes]


def embeds_arguments(encoded: Sequence[EncodedPrompts], family: Family) -> dict[str, Any]:
    """Return a call's arguments `prompt_embeds` and the like, for prompts of equal `num_blocks`."""
    arguments: dict[str, Any] = {}
    for prefix in encoded[0].results:
        for position, name in enumerate(family.embeds_names):
            rows = [each.results[prefix][position] for each in encoded]
            arguments[prefix + name] = rows if family.takes_embeds_list else torch.stack(rows)
    if len(family.embeds_names) > 1:
        # The default would cut longer prompts; a mask whose zeros are all cut would be dropped.
        arguments["max_sequence_length"] = max(
            value.shape[1] for value in arguments.values() if isinstance(value, torch.Tensor)
        )
    return arguments


def _encode(pipeline: Any, family: Family, prompt: str, negative: str | None) -> EncodedPrompts:
    """Encode one recipe's prompts as the pipeline's own call does for a single picture."""
    parameters = inspect.signature(pipeline.encode_prompt).parameters
    default = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    options: dict[str, Any] = {"device": pipeline._execution_device}
    if default is not None and "max_sequence_length" in parameters:
        options["max_sequence_length"] = default.default
    encodes_both = "negative_prompt" in parameters
    if encodes_both:
        options["do_classifier_free_guidance"] = negative is not None
    if encodes_both and negative is not None:
        options["negative_prompt"] = [negative]
    with torch.no_grad():
        # A new list for each call: Z-Image writes its chat template into the list it is given.
        encoded = _as_tuple(pipeline.encode_prompt(prompt=[prompt], **options))
        if negative is not None and not encodes_both:
            encoded += _as_tuple(pipeline.encode_prompt(prompt=[negative], **options))
    count = len(family.embeds_names)
    results, num_blocks = {}, []
    for index, prefix in enumerate(("",) if negative is None else ("", "negative_")):
        tensors = encoded[index * count : (index + 1) * count]
        results[prefix], blocks = _in_blocks(tensors, family.tokens_per_block)
        num_blocks.append(blocks)
    return EncodedPrompts(results=results, num_blocks=tuple(num_blocks))


def _as_tuple(encoded: Any) -> tuple[Any, ...]:
    return encoded if isinstance(encoded, tuple) else (encoded,)


def _in_blocks(encoded: tuple[Any, ...], block: int) -> tuple[tuple[torch.Tensor, ...], int]:
    """Return a prompt's embeddings and mask, padded if it has a mask, and its number of blocks."""
    embeddings = encoded[0][0]  # (tokens, width)
    if len(encoded) == 1:
        return (embeddings,), -(-len(embeddings) // block)
    mask = encoded[1]
    mask = embeddings.new_ones(len(embeddings), dtype=torch.long) if mask is None else mask[0]
    # At least one token of padding: a mask without zeros would be dropped, and another kernel run.
    blocks = int(mask.sum()) // block + (block > 1)
    length = max(len(embeddings), blocks * block)
    return (_zero_padded(embeddings, length), _zero_padded(mask, length)), blocks


def _zero_padded(rows: torch.Tensor, length: int) -> torch.Tensor:
    return torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])
