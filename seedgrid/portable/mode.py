"""`portable_block`: a block in which torch computes by portable arithmetic.

Each operation that reaches torch's dispatcher is run unchanged if it is exact, or replaced by its
rule (rules.py); others are refused by name. Linear layers and attention are replaced before they
reach the dispatcher, as torch splits them into other operations on some devices and shapes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from seedgrid.portable import layer_rules, reductions  # noqa: F401 (they fill `RULES`)
from seedgrid.portable.rules import EXACT, RULES, Rule, in_place, refusal
from seedgrid.portable.tables import portable_tables
from seedgrid.portable.threads import taken_from_torch

_FUNCTION_RULES: Final[dict[Any, Rule]] = {
    torch.nn.functional.linear: RULES["linear"],
    torch.nn.functional.scaled_dot_product_attention: RULES["scaled_dot_product_attention"],
}


class _Functions(TorchFunctionMode):
    """Replaces functions before torch splits them into operations."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule = _FUNCTION_RULES.get(func)
        if rule is None:
            return func(*args, **(kwargs or {}))
        with _disable_current_modes():
            return rule(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    """Replaces or refuses operations, by their names."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.split("::")[1]
        rule = func if name in EXACT else RULES.get(name) or in_place(name)
        if rule is None:
            raise refusal(f"aten::{name}")
        with torch._C.DisableTorchFunction():
            return rule(*args, **(kwargs or {}))


@contextmanager
def native_block() -> Iterator[None]:
    """See `seedgrid.portable.native`."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


@contextmanager
def portable_block() -> Iterator[None]:
    """See `seedgrid.portable.portable`."""
    with (
        taken_from_torch(),
        torch.no_grad(),
        np.errstate(all="ignore"),  # Tables may have infinities; torch does not warn of them.
        portable_tables(),
        _Functions(),
        _Operations(),  # type: ignore[no-untyped-call] # torch has not annotated it
    ):
        yield
