"""`portable_block`: a block in which torch computes by portable arithmetic.

Each operation that reaches torch's dispatcher is exact and unchanged, has a rule (rules.py), or is
refused by its name. Linear layers and attention are caught one level higher, where torch has not
yet chosen a kernel by device and shape.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from seedgrid.portable import layer_rules, reduction_rules  # noqa: F401 (rules)
from seedgrid.portable.rules import EXACT, RULES, Rule, in_place, refusal
from seedgrid.portable.tables import portable_tables
from seedgrid.portable.threads import taken_from_torch

_ABOVE: Final[dict[Any, Rule]] = {
    torch.nn.functional.linear: RULES["linear"],
    torch.nn.functional.scaled_dot_product_attention: RULES["scaled_dot_product_attention"],
}


class _Functions(TorchFunctionMode):
    """Catches functions that torch takes apart on some devices only."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        rule = _ABOVE.get(func)
        if rule is None:
            return func(*args, **(kwargs or {}))
        with _disable_current_modes():
            return rule(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func._schema.name.split("::")[1]
        rule = func if name in EXACT else RULES.get(name) or in_place(name)
        if rule is None:
            raise refusal(f"aten::{name}")
        with torch._C.DisableTorchFunction():
            return rule(*args, **(kwargs or {}))


@contextmanager
def native_block() -> Iterator[None]:
    """Let torch compute as usual in a block within `portable_block`; no change outside one."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


@contextmanager
def portable_block() -> Iterator[None]:
    """See `seedgrid.portable.portable`."""
    # Tables may have infinities; torch does not warn of them either.
    with (
        taken_from_torch(),
        torch.no_grad(),
        np.errstate(all="ignore"),
        portable_tables(),
        _Functions(),
        _Operations(),  # type: ignore[no-untyped-call] # torch has not annotated it
    ):
        yield
