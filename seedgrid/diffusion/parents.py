"""Cached ways of parents, painted again with the same bits before their children if lost."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.core.variables import number
from seedgrid.diffusion.backend import PreviewMaker, Watch
from seedgrid.diffusion.way import Way


class WayMemory:
    """Ways by recipe and passport, least recently used first, within `SEEDGRID_WAY_MB`."""

    def __init__(self) -> None:
        self._ways: OrderedDict[str, Way] = OrderedDict()
        self._num_bytes = 0

    def get(self, key: str) -> Way | None:
        """Return a way that is still cached."""
        if key in self._ways:
            self._ways.move_to_end(key)
        return self._ways.get(key)

    def keep(self, key: str, way: Way) -> None:
        """Keep a way, and drop the least recently used ones."""
        if key in self._ways:
            self._num_bytes -= self._ways.pop(key).num_bytes
        self._ways[key] = way
        self._num_bytes += way.num_bytes
        while self._ways and self._num_bytes > max_bytes():
            self._num_bytes -= self._ways.popitem(last=False)[1].num_bytes


def max_bytes() -> float:
    """Return how much memory ways may take."""
    bound = number("SEEDGRID_WAY_MB")
    return float("inf") if bound is None else bound * 1e6


class PartWatch:
    """Reports the progress of one batch as a part of several that are painted one after another.

    `watch` follows the whole, `previous` was the batch before; `later_steps` come after this one,
    which is halted at step `halt` (0 paints all).
    """

    def __init__(
        self,
        watch: Watch,
        *,
        later_steps: int = 0,
        halt: int = 0,
        previous: "PartWatch | None" = None,
    ) -> None:
        self._watch = watch
        self._later_steps = later_steps
        self._halt = halt
        self._steps_before: int = previous.end if previous else 0
        self._last = 0

    @property
    def end(self) -> int:
        """How many steps are done after this batch; the halting step itself is never reported."""
        return self._steps_before + (self._halt or self._last)

    @property
    def cancelled(self) -> bool:
        """Whether it should stop."""
        return self._watch.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        """Report the noise, only of the last batch."""
        if not self._later_steps:
            self._watch.noise(previews)

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Report a step, with previews only of the last batch."""
        self._last = number
        all_steps = self._steps_before + (self._halt or total) + self._later_steps
        shown = _no_previews if self._later_steps else previews
        self._watch.step(self._steps_before + number, all_steps, shown)

    def tile(self, number: int, total: int) -> None:
        """Report a tile."""
        self._watch.tile(number, total)

    def freed(self) -> None:
        """Report that memory was freed and all begins anew."""
        self._watch.freed()


def _no_previews() -> tuple[Pixels, ...]:
    return ()


def missing_parents(
    recipes: Sequence[Recipe], find: Callable[[Recipe], Way | None], order: int
) -> tuple[dict[str, Way], list[tuple[list[Recipe], int]]]:
    """Return the known ways by parents' ids, and batches to paint first with steps (0 is all)."""
    known: dict[str, Way] = {}
    needed: dict[str, tuple[Recipe, list[Recipe]]] = {}
    for recipe in recipes:
        if recipe.parent:
            needed.setdefault(recipe.parent.id, (recipe.parent, []))[1].append(recipe)
    groups: dict[str, list[Recipe]] = {}
    for parent, children in needed.values():
        way = find(parent)
        if way is not None and all(way.serves(child, order) for child in children):
            known[parent.id] = way
        else:
            groups.setdefault(parent.batch_key, []).append(parent)
    batches = []
    for group in groups.values():
        width = group[0].lock_width
        for start in range(0, len(group), width):
            batch = group[start : start + width]
            children = [child for parent in batch for child in needed[parent.id][1]]
            is_whole = any(child.mask for child in children)
            batches.append((batch, 0 if is_whole else max(c.held_steps for c in children)))
    return known, batches
