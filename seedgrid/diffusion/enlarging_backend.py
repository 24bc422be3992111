"""EnlargingBackend: makes a picture larger with an upscaler network; no model, no words, no noise.

`upscaling.py` holds the network and does the work. `DeferredBackend` asks this one for recipes that
name an upscaler.
"""

from collections.abc import Callable, Sequence

from seedgrid.core.recipe import Passport, Recipe, Upscaler
from seedgrid.diffusion.backend import Outcome, Placement, Unwatched, Watch
from seedgrid.diffusion.devices import pick_device
from seedgrid.diffusion.environment import current_passport
from seedgrid.diffusion.memory import within_memory
from seedgrid.diffusion.scope import computing
from seedgrid.diffusion.upscaling import Enlarger, spandrel_version
from seedgrid.storage import starts


class EnlargingBackend:
    """See `Backend` for what each method promises.

    Args:
        free_memory: Lets go of whatever else is held, when memory is full.
    """

    def __init__(self, free_memory: Callable[[], None]) -> None:
        self._enlarger = Enlarger()
        self._free_memory = free_memory

    def prepare(self, recipe: Recipe, placement: Placement) -> Passport:
        """Load the network and say under which passport it would compute."""
        device = pick_device(placement.device)

        def load() -> Passport:
            with computing(recipe, placement):
                starts.check_there([recipe.start])
                release = spandrel_version(self._enlarger.load(_network_of(recipe), device))
                passport = current_passport(device, placement)
            return passport.model_copy(update={"spandrel": release}) if release else passport

        return within_memory(load, self._free_memory, Unwatched().freed, recipe, str(device))

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the network is loaded already."""
        return self._enlarger.has(_network_of(recipe), pick_device(placement.device))

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Make the picture that a recipe begins from as large as it says; it is alone, always."""
        (recipe,) = recipes
        device = pick_device(placement.device)

        def enlarge() -> Outcome:
            with computing(recipe, placement):
                return self._enlarger.enlarge(recipe, device, watch)

        return (within_memory(enlarge, self._free_memory, watch.freed, recipe, str(device)),)

    def close(self) -> None:
        """Let go of the network."""
        self._enlarger.clear()


def _network_of(recipe: Recipe) -> Upscaler:
    assert recipe.upscaler is not None
    return recipe.upscaler
