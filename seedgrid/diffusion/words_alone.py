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
    """Read each recipe's words by themselves, each text once."""
    read: dict[str, tuple[torch.Tensor, ...]] = {}
    found = []
    for recipe in recipes:
        said = {"": recipe.prompt}
        if family.needs_negative(recipe):
            said["negative_"] = family.left_out(recipe)
        for text in said.values():
            if text not in read:
                read[text] = _read(pipeline, family, text)
        texts = {prefix: read[text] for prefix, text in said.items()}
        blocks = tuple(-(-len(rows[0]) // family.word_block) for rows in texts.values())
        found.append(Words(texts=texts, lengths=blocks))
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


def _read(pipeline: Any, family: Family, text: str) -> tuple[torch.Tensor, ...]:
    """Read one text, as the pipeline's own call would read it without neighbours."""
    takes = inspect.signature(pipeline.encode_prompt).parameters
    default = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    more: dict[str, Any] = {"device": pipeline._execution_device}
    if "do_classifier_free_guidance" in takes:
        more["do_classifier_free_guidance"] = False
    if default is not None and "max_sequence_length" in takes:
        more["max_sequence_length"] = default.default
    with torch.no_grad():
        # A new list: Z-Image writes its chat template into the one that it is given.
        made = pipeline.encode_prompt(prompt=[text], **more)
    embeddings = (made[0] if isinstance(made, tuple) else made)[0]  # (tokens, width)
    if len(family.alone) == 1:
        return (embeddings,)
    mask = made[1]
    mask = embeddings.new_ones(len(embeddings), dtype=torch.long) if mask is None else mask[0]
    # At least one more than there are: a mask without zeros is dropped, and with it a kernel.
    padded = (len(embeddings) // family.word_block + 1) * family.word_block
    return _longer(embeddings, padded), _longer(mask, padded)


def _longer(rows: torch.Tensor, length: int) -> torch.Tensor:
    return torch.cat([rows, rows.new_zeros(length - len(rows), *rows.shape[1:])])
