"""Parents: whose ways are remembered, and which are painted before the pictures that follow them.

Memory of ways is one that may be lost: what is not there is painted again, with the same bits.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from seedgrid.core.recipe import Recipe
from seedgrid.core.variables import number
from seedgrid.diffusion.backend import PreviewMaker, Watch
from seedgrid.diffusion.way import Way


class WayMemory:
    """Ways by recipe and passport, the newest first, within `SEEDGRID_WAY_MB`."""

    def __init__(self) -> None:
        self._ways: OrderedDict[str, Way] = OrderedDict()
        self._num_bytes = 0

    def get(self, key: str) -> Way | None:
        """Return a way that is still known."""
        if key in self._ways:
            self._ways.move_to_end(key)
        return self._ways.get(key)

    def keep(self, key: str, way: Way) -> None:
        """Keep a way, and forget those that were not asked for longest."""
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
    """Follows one of several batches that are painted one after another, as a part of them.

    Args:
        watch: Of the last of them.
        later: How many steps come after this batch.
        halt: How many steps of it are run; 0 for all.
        before: What came before it.
    """

    def __init__(
        self, watch: Watch, *, later: int = 0, halt: int = 0, before: "PartWatch | None" = None
    ) -> None:
        self._watch = watch
        self._later = later
        self._halt = halt
        self._before: int = before.end if before else 0
        self._last = 0

    @property
    def end(self) -> int:
        """How many steps are done when it is: the one at which it is halted is not told of."""
        return self._before + (self._halt or self._last)

    @property
    def cancelled(self) -> bool:
        """Whether it should stop."""
        return self._watch.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        """Tell of the beginning, of the last batch alone."""
        if not self._later:
            self._watch.noise(previews)

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Tell of a step; what it looks like, of the last batch alone."""
        self._last = number
        all_steps = self._before + (self._halt or total) + self._later
        told = tuple if self._later else previews
        self._watch.step(self._before + number, all_steps, told)

    def tile(self, number: int, total: int) -> None:
        """Tell of a tile."""
        self._watch.tile(number, total)

    def freed(self) -> None:
        """Tell that all begins anew."""
        self._watch.freed()


def missing_parents(
    recipes: Sequence[Recipe], find: Callable[[Recipe], Way | None], order: int
) -> tuple[dict[str, Way], list[tuple[list[Recipe], int]]]:
    """Sort the parents of recipes into those whose ways are known and those to paint first.

    Returns:
        Ways by the ids of recipes; and batches of parents, each with how many steps of it are
        needed, 0 for all.
    """
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
