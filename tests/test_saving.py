"""Saving beside the painting: one batch without room harms no other."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from cluster_painters import Several
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import LibraryError
from seedgrid.core.picture import Entry, Picture
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import Placement, Unwatched
from seedgrid.engine import Engine
from seedgrid.engine.run import Asker, Run
from seedgrid.engine.saver import Saver
from seedgrid.testing.fake import FakeBackend

SOON_S = 60.0


class SlowStore(MemoryStore):
    """Saves nothing before `may_save`.

    Attributes:
        refused: Seeds of pictures that find no room.
        is_saving: Set as soon as anything came.
    """

    def __init__(self, *refused: int) -> None:
        super().__init__()
        self.refused = refused
        self.is_saving = threading.Event()
        self.may_save.clear()

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        self.is_saving.set()
        assert self.may_save.wait(SOON_S)
        if any(picture.recipe.seed in self.refused for picture in pictures):
            raise LibraryError("disk_full", value="/nowhere")
        return super().add_together(pictures)


def _runs(make_recipes: MakeRecipes, *stores: MemoryStore) -> list[Run]:
    """Return a run of four seeds for each store, the seeds going on from run to run."""
    return [
        Run(
            plan_grid(make_recipes(seeds=tuple(range(4 * number, 4 * number + 4)))),
            asker=Asker(owner="me"),
            library=store,
            placement=Placement(),
            fresh=True,
            notices=(),
            on_cancel=lambda _: None,
        )
        for number, store in enumerate(stores)
    ]


def _save_all(runs: Sequence[Run], first: SlowStore) -> list[BaseException | None]:
    """Let a batch of each run wait behind the first one's; return what came of each."""
    saver = Saver()
    saved = []
    for run in runs:
        pixels = FakeBackend().paint([job.recipe for job in run.jobs], Placement(), Unwatched())
        saved.append(saver.save(run, list(enumerate(pixels)), Passport()))
        assert first.is_saving.wait(SOON_S)
    first.may_save.set()
    saver.close()
    return [each.exception(SOON_S) for each in saved]


def test_a_picture_without_room_harms_no_other_batch(make_recipes: MakeRecipes) -> None:
    """On a full disk each is saved that finds room, and each run hears of its own pictures."""
    store = SlowStore(9)
    runs = _runs(make_recipes, *[store] * 4)
    errors = _save_all(runs, store)
    assert [error is None for error in errors] == [True, True, False, True]
    assert [sorted(run.finished) for run in runs] == [[0, 1, 2, 3]] * 2 + [[0, 2, 3], [0, 1, 2, 3]]


def test_a_painter_paints_while_its_pictures_are_saved(make_recipes: MakeRecipes) -> None:
    """A hundred painters once waited until one thread had saved what they had painted."""
    store, painter = SlowStore(), FakeBackend()
    with Engine(Several(a=painter), store) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=tuple(range(8)))), owner="me")
        assert store.is_saving.wait(SOON_S)
        events, since = run.next_events(0)
        while sum(type(event).__name__ == "Started" for event in events) < 2:
            more, since = run.next_events(since, SOON_S)
            assert more, "it waits for what it painted to be saved"
            events += more
        assert not run.finished
        store.may_save.set()
        assert len(run.result(SOON_S)) == 8
