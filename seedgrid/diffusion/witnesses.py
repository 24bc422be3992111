"""Which painted batch is watched for a probe that will follow, and what was seen of the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.pipeline_cache import Loaded
from seedgrid.diffusion.pipeline_call import cells_of, is_one_call
from seedgrid.diffusion.probe_results import recall_report, report_key
from seedgrid.diffusion.witness import Witness


class Witnesses:
    """Watches a batch where nobody tested its lock yet; a probe then needs one batch less."""

    def __init__(self) -> None:
        self._last: dict[str, Witness] = {}  # At most one, by the key of the report it is for.
        self._tested = ""  # The key of what was last found to be tested.

    @contextmanager
    def of_batch(
        self, recipes: Sequence[Recipe], loaded: Loaded, passport: Passport
    ) -> Iterator[Witness | None]:
        """Give who watches the batch that is painted in the block, or None where nobody needs to.

        What was seen of a picture is kept when the block ends well; of the batch before nothing is.
        """
        self._last.clear()
        witness = self._called(recipes, loaded, passport)
        yield witness
        if witness is not None and witness.has_numbers:
            self._last[report_key(recipes[0], passport)] = witness

    def take(self, recipe: Recipe, passport: Passport) -> Witness | None:
        """Return, once, what was seen of the last batch, if this recipe's probe may use it."""
        return self._last.pop(report_key(recipe, passport), None)

    def clear(self) -> None:
        """Forget what was seen."""
        self._last.clear()

    def _called(
        self, recipes: Sequence[Recipe], loaded: Loaded, passport: Passport
    ) -> Witness | None:
        first = recipes[0]
        key = report_key(first, passport)
        if first.is_portable or key == self._tested or not is_one_call(recipes, loaded):
            return None
        if recall_report(first, passport) is not None:
            self._tested = key
            return None
        cells = cells_of(recipes)
        alike = (slot for slot, cell in enumerate(cells) if report_key(cell, passport) == key)
        return Witness(cells, max(alike))
