"""Words that are read alone, for families in which a neighbour's words would reach a picture.

Such a pipeline pads its words to the longest of the batch, in the text encoder or the denoiser, and
other lengths run through other kernels. So the pipeline's own `encode_prompt` reads each text by
itself; with a mask it is padded to a multiple of so many tokens, and only texts that fill as many
blocks share a call, which is given `prompt_embeds`. A picture is a function of its own words.

    words = read_alone(pipeline, family, recipes)
    pipeline(**words_together(words[:4], family), generator=…)
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from seedgrid.core.recipe import Recipe
from seedgrid.models.families import Family


@dataclass(frozen=True, kw_only=True)
class Words:
    """One recipe's words, read.

    Attributes:
        texts: By the prefix of the arguments' names, "" and "negative_", what `encode_prompt` made
            of the text: embeddings (tokens, width), and a mask (tokens,) where the family has one.
        lengths: How many blocks of tokens each text fills.
    """

    texts: Mapping[str, tuple[torch.Tensor, ...]]
    lengths: tuple[int, ...]


def read_alone(pipeline: Any, family: Family, recipes: Sequence[Recipe]) -> list[Words]:
    """Read each recipe's words by themselves, equal ones once."""
    read: dict[tuple[str, ...], Words] = {}
    found = []
    for recipe in recipes:
        negative = [family.left_out(recipe)] if family.needs_negative(recipe) else []
        said = (recipe.prompt, *negative)
        if said not in read:
            read[said] = _read(pipeline, family, *said)
        found.append(read[said])
    return found


def words_together(words: Sequence[Words], family: Family) -> dict[str, Any]:
    """Return the arguments that stand for the words of one call; all of equal `lengths`."""
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


def _read(pipeline: Any, family: Family, prompt: str, negative: str | None = None) -> Words:
    """Read one recipe's words, as the pipeline's own call would read them without neighbours."""
    takes = inspect.signature(pipeline.encode_prompt).parameters
    default = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    more: dict[str, Any] = {"device": pipeline._execution_device}
    if default is not None and "max_sequence_length" in takes:
        more["max_sequence_length"] = default.default
    reads_both = "negative_prompt" in takes
    if reads_both:
        more["do_classifier_free_guidance"] = negative is not None
    if reads_both and negative is not None:
        more["negative_prompt"] = [negative]
    with torch.no_grad():
        # New lists: Z-Image writes its chat template into those that it is given.
        made = pipeline.encode_prompt(prompt=[prompt], **more)
        if negative is not None and not reads_both:
            made = (*_parts(made), *_parts(pipeline.encode_prompt(prompt=[negative], **more)))
    made, number = _parts(made), len(family.alone)
    texts, lengths = {}, []
    for place, prefix in enumerate(("",) if negative is None else ("", "negative_")):
        rows = made[place * number : (place + 1) * number]
        texts[prefix], blocks = _in_blocks(rows, family.word_block)
        lengths.append(blocks)
    return Words(texts=texts, lengths=tuple(lengths))


def _parts(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def _in_blocks(made: tuple[Any, ...], block: int) -> tuple[tuple[torch.Tensor, ...], int]:
    """Return one text's rows, and how many blocks of tokens they fill; with a mask, padded."""
    embeddings = made[0][0]  # (tokens, width)
    if len(made) == 1:
        return (embeddings,), -(-len(embeddings) // block)
    mask = made[1]
    mask = embeddings.new_ones(len(embeddings), dtype=torch.long) if mask is None else mask[0]
    # At least one more than there are: a mask without zeros is dropped, and with it a kernel.
    blocks = int(mask.sum()) // block + (block > 1)
    padded = max(len(embeddings), blocks * block)
    return (_longer(embeddings, padded), _longer(mask, padded)), blocks


def _longer(rows: torch.Tensor, length: int) -> torch.Tensor:
    return torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])
