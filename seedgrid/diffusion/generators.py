"""One fresh CPU generator for each picture: the only place where SeedGrid's randomness is made.

A `torch.Generator` is a state that is used up, so every call of a pipeline needs fresh ones. One
generator for a whole batch, or `[g] * 4`, ties only the first picture to its seed: the same object
is drawn from four times in a row. A list of four separate generators ties each picture to its own
seed, whatever its slot. They live on the CPU, because diffusers then draws there and moves the
noise, so that a seed means the same noise on every device; GPU generators are offered nowhere.

Knows nothing of pipelines.

    >>> [generator.initial_seed() for generator in fresh_generators((7, 7))]
    [7, 7]
"""

from collections.abc import Sequence

import torch

from seedgrid.core.seeds import check_seed


def fresh_generators(seeds: Sequence[int]) -> list[torch.Generator]:
    """Make one new CPU generator for each seed, in order.

    Args:
        seeds: Each 0 … 2**32 - 1; repeats give separate generators in the same state.

    Returns:
        Generators that nobody has drawn from; use each list for one call only.

    Raises:
        InputError: A seed is not one.

    Source:
        https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
    """
    return [torch.Generator("cpu").manual_seed(check_seed(seed)) for seed in seeds]
