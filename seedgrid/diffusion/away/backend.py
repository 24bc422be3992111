"""AwayBackend: the Backend protocol over a place that is another process or another machine.

Recipes go out as a text, plain news come back; errors cross as a code and its data. The passport is
that of the place. Needs no torch here.

    AwayBackend(ZeroGpu(), InstalledBackend())
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Generator, Sequence
from functools import partial
from typing import Final, NoReturn, Protocol

from seedgrid.core import errors
from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError, RunCancelled, RunError, SeedGridError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.away.computing import News
from seedgrid.diffusion.away.job import job_text
from seedgrid.diffusion.backend import Backend, LoadWatch, Outcome, Placement, Watch

NUM_PASSPORTS: Final = 256
"""Of so many settings the place's passport is known; of another it is asked again."""
_ERRORS: Final = {
    kind.__name__: kind
    for kind in (
        errors.RunError,
        errors.RunCancelled,
        errors.ModelError,
        errors.DeviceError,
        errors.PictureError,
    )
}


class Place(Protocol):
    """Where `computing.compute` runs."""

    def compute(self, text: str, paint: bool, expected_s: float) -> Generator[News]:
        """Run it there and give its news; closing the generator stops it within a step.

        `("quiet",)` among them tells nothing; whoever listens may close the generator then.

        Raises:
            RunError: `place_failed`: the place did not do its part. `worker_lost`: it is gone.
        """

    def close(self) -> None:
        """Let go of what it holds."""


class AwayBackend:
    """Paints at a place; see `Backend` for what each method promises."""

    def __init__(self, place: Place, cards: Backend) -> None:
        self._place = place
        self._cards = cards
        self.painted_s = 0.0
        self._speeds = Speeds()
        self._passports: OrderedDict[tuple[str, Placement], Passport] = OrderedDict()

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it."""
        return self._cards.card(model)

    def prepare(
        self,
        recipe: Recipe,
        placement: Placement,
        watch: LoadWatch | None = None,  # noqa: ARG002 (what is loaded elsewhere is not told)
    ) -> Passport:
        """Say under which passport the place computes; it is asked once."""
        key = (recipe.batch_key, placement)
        if key not in self._passports:
            self._ask([recipe], placement, paint=False)
        return self._passports[key]

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the place has said so before."""
        return (recipe.batch_key, placement) in self._passports

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Have a batch painted there.

        Raises:
            RunCancelled: `watch.cancelled` became true.
            RunError: `place_changed`: the place computes under another passport than it said.
        """
        promised = self.prepare(recipes[0], placement)
        outcomes = self._ask(recipes, placement, paint=True, watch=watch)
        if self._passports[recipes[0].batch_key, placement] != promised:
            raise RunError("place_changed")
        return outcomes

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> None:
        """Tell nothing: a place that is lent is not kept busy with questions."""

    def try_portable(self, recipe: Recipe, placement: Placement) -> NoReturn:  # noqa: ARG002 (protocol)
        """Raise `place_failed`: nobody has asked for a picture, whose time would it be?"""
        raise RunError("place_failed", reason="portable arithmetic is not tried there")

    def rehash(self, recipe: Recipe) -> None:
        """Compare every byte of a model's weights, those of this machine, with what it names."""
        self._cards.rehash(recipe)

    def close(self) -> None:
        """Let go of the place."""
        self._place.close()

    def renewed(self) -> AwayBackend:
        """Return another one that has asked nothing yet."""
        return AwayBackend(self._place, self._cards.renewed())

    def _ask(
        self,
        recipes: Sequence[Recipe],
        placement: Placement,
        *,
        paint: bool,
        watch: Watch | None = None,
    ) -> tuple[Outcome, ...]:
        expected_s = self._speeds.estimate_s(recipes) if paint else 0.0
        news = self._place.compute(job_text(recipes, placement), paint, expected_s)
        with contextlib.closing(news):
            for kind, *said in news:
                if watch is not None and watch.cancelled:
                    raise RunCancelled("run_cancelled")
                match kind:
                    case "passport":
                        passport = Passport.model_validate_json(said[0])
                        self._know((recipes[0].batch_key, placement), passport)
                    case "failed":
                        raise _raised(*said)
                    case "pictures":
                        self.painted_s = said[1]
                        self._speeds.note(recipes[0], said[1])
                        return tuple(map(_outcome, said[0]))
                    case _:
                        _tell(watch, kind, said)
        if paint or not self.is_ready(recipes[0], placement):
            raise RunError("place_failed", reason="it ended without an answer")
        return ()

    def _know(self, key: tuple[str, Placement], passport: Passport) -> None:
        """Remember what the place said last; of settings that were not told so long, nothing."""
        self._passports[key] = passport
        self._passports.move_to_end(key)
        while len(self._passports) > NUM_PASSPORTS:
            self._passports.popitem(last=False)


def _tell(watch: Watch | None, kind: str, said: Sequence[object]) -> None:
    if watch is None or kind == "quiet":
        return
    if kind == "freed":
        watch.freed()
        return
    if kind == "tile":
        number, total = map(int, map(str, said))
        watch.tile(number, total)
        return
    *numbers, shown = said
    previews = partial(_as_pixels, shown)
    if kind == "noise":
        watch.noise(previews)
    else:
        number, total = map(int, map(str, numbers))
        watch.step(number, total, previews)


def _as_pixels(shown: object) -> tuple[Pixels, ...]:
    return tuple(shown) if isinstance(shown, tuple | list) else ()


def _outcome(plain: object) -> Outcome:
    if isinstance(plain, tuple):
        code, data = plain
        return RunError(code, **data)
    return plain  # type: ignore[return-value] # an array, as `_plain` left it


def _raised(kind: str, code: str, data: dict[str, object]) -> SeedGridError:
    """Make the error again that was raised there; a kind that is unknown is an error of a run."""
    found = _ERRORS.get(kind)
    if found is not None and issubclass(found, InputError):
        data = {name: value for name, value in data.items() if name != "field"}
    return (found or RunError)(code, **data)
