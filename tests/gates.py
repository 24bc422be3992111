"""A painter that goes on when it is told to, where a slow enough run would be a matter of luck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.testing.fake import FakeBackend

MayGo = Callable[[Sequence[Recipe], int], bool]

_LOOK_S: Final = 0.005


class HeldBackend(FakeBackend):
    """Waits before each step that may not be made yet, and hears Stop meanwhile.

    Args:
        may_go: Whether a batch of these recipes may make the step of this number.
        options: As `FakeBackend` takes them.
    """

    def __init__(self, may_go: MayGo, **options: Any) -> None:
        super().__init__(**options)
        self._may_go = may_go

    def pause(self, recipes: Sequence[Recipe], number: int, watch: Watch) -> None:
        super().pause(recipes, number, watch)
        while not (watch.cancelled or self._may_go(recipes, number)):
            time.sleep(_LOOK_S)


class GatedBackend(HeldBackend):
    """Makes steps while its gate is open, as it is at first."""

    def __init__(self, **options: Any) -> None:
        self.may_go = threading.Event()
        self.may_go.set()
        super().__init__(lambda _recipes, _number: self.may_go.is_set(), **options)
