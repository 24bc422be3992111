"""Somebody who follows a batch."""

from __future__ import annotations

from collections.abc import Callable

from seedgrid.core.picture import Pixels


class SilentWatch:
    """Follows a batch, remembers its steps, and stops it when told to."""

    def __init__(self, stop_after: int | None = None, *, with_previews: bool = False) -> None:
        self.steps: list[tuple[int, int]] = []
        self.previews: list[tuple[Pixels, ...]] = []
        self.noises: list[tuple[Pixels, ...]] = []
        self.num_freed = 0
        self.tiles: list[tuple[int, int]] = []
        self._stop_after = stop_after
        self._with_previews = with_previews

    @property
    def cancelled(self) -> bool:
        return (
            self._stop_after is not None and len(self.steps) + len(self.tiles) >= self._stop_after
        )

    def noise(self, previews: Callable[[], tuple[Pixels, ...]]) -> None:
        if self._with_previews:
            self.noises.append(previews())

    def step(self, number: int, total: int, previews: Callable[[], tuple[Pixels, ...]]) -> None:
        self.steps.append((number, total))
        if self._with_previews:
            self.previews.append(previews())

    def tile(self, number: int, total: int) -> None:
        self.tiles.append((number, total))

    def freed(self) -> None:
        self.num_freed += 1
