"""Which painted batch is watched for a probe that will follow, and what was seen of the last."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.pipeline_cache import Loaded
from seedgrid.diffusion.pipeline_call import CallContext, cells_of_one_call
from seedgrid.diffusion.probe_results import recall_by_key, report_key
from seedgrid.diffusion.witness import Witness


class Witnesses:
    """Watches a batch where nobody tested its lock yet; a probe then needs one batch less."""

    def __init__(self) -> None:
        self._last: dict[str, Witness] = {}  # At most one, by the key of the report it is for.
        self._tested = ""  # The key of what was last found to be tested.

    @contextmanager
    def of_batch(
        self, recipes: Sequence[Recipe], loaded: Loaded, passport: Passport
    ) -> Iterator[list[CallContext]]:
        """Give what watches the batch that is painted in the block; nothing where nobody needs to.

        What was seen of a picture is kept when the block ends well; of the batch before nothing is.
        """
        self._last.clear()
        cells = cells_of_one_call(recipes, loaded)
        key = report_key(cells[-1], passport) if cells else ""
        if not key or cells[-1].is_portable or self._is_tested(key):
            yield []
            return
        witness = Witness(cells)
        yield [witness.watching]
        if witness.has_numbers:
            self._last[key] = witness

    def take(self, recipe: Recipe, passport: Passport) -> Witness | None:
        """Return, once, what was seen of the last batch, if this recipe's probe may use it."""
        return self._last.pop(report_key(recipe, passport), None)

    def clear(self) -> None:
        """Forget what was seen."""
        self._last.clear()

    def _is_tested(self, key: str) -> bool:
        if key != self._tested and recall_by_key(key) is not None:
            self._tested = key
        return key == self._tested
