"""Which of torch's operations are exact, and the table of rules for those that are not.

Exact ones move numbers, compare them, work on whole numbers, or do a single IEEE 754 operation a
number. A rule is made of IEEE operations in a fixed order, or of sums that are exact in any order.
Names are those of torch's `aten` operations. `mode.py` imports all rules.
"""

from collections.abc import Callable
from typing import Any, Final

import torch

from seedgrid.core.errors import RunError

Rule = Callable[..., Any]
TensorRule = Callable[..., torch.Tensor]

_EXACT_WORDS: Final = """
    view _unsafe_view reshape expand permute transpose t unsqueeze squeeze select slice split
    split_with_sizes unbind cat stack clone alias detach detach_ _to_copy copy_ copy lift_fresh
    lift_fresh_copy repeat flip roll index embedding gather index_select constant_pad_nd
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _local_scalar_dense full full_like
    ones zeros empty empty_like new_ones new_zeros new_full new_empty ones_like zeros_like
    scalar_tensor fill_ zero_ where masked_fill masked_fill_ eq ne lt le gt ge eq_ logical_not
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor all any
    argmax argmin nonzero searchsorted isnan isinf isfinite tril triu tril_ triu_ diagonal unfold
    as_strided select_scatter slice_scatter empty_strided new_empty_strided resize_ set_ abs abs_
    neg neg_ floor floor_ ceil ceil_ round round_ trunc mul mul_ rand random_ sign __and__ __or__
    __xor__ __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift _reshape_alias
    pixel_shuffle pixel_unshuffle equal is_same_size index_put index_put_ _index_put_impl_
    index_copy index_copy_ scatter scatter_ max min _linalg_check_errors repeat_interleave
    channel_shuffle reflection_pad2d replication_pad2d
"""
EXACT: Final = frozenset(_EXACT_WORDS.split())  # Operations that give the same bits everywhere

RULES: Final[dict[str, Rule]] = {}  # What replaces other operations; called with torch's arguments


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Write a function into the table under some names."""

    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return add


def in_place(name: str) -> Rule | None:
    """Return the rule of an operation that overwrites its first argument, `silu_` for example."""
    plain = RULES.get(name.removesuffix("_"))
    if plain is None or not name.endswith("_"):
        return None

    def compute(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        return x.copy_(plain(x, *args, **options))

    return compute


def refusal(name: str) -> RunError:
    """Return the error for an operation without a portable rule, by its name."""
    return RunError("portable_refused", value=name)
