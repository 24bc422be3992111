"""Looking: a tree drawn as one picture, and a film of a picture from its noise to its end."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seedgrid.core.errors import RunError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.diffusion.backend import Backend, Placement, PreviewMaker, Unwatched, Watch
from seedgrid.studio.options import AnyPicture
from seedgrid.studio.starting import Starting

if TYPE_CHECKING:
    from seedgrid.core.recipe import Recipe
    from seedgrid.export.film import Film
    from seedgrid.library import Library

MAX_FRAMES: Final = 100


class Looking(Starting):
    """What a studio shows beside pictures."""

    def draw_tree(self, picture: AnyPicture, path: str | Path) -> None:
        """Draw the whole tree of choices that a picture belongs to, as one PNG.

        What is in the trash or lost is left out.

        Args:
            picture: See `AnyPicture`.
            path: Ends in `.png`; replaced if it exists.
        """
        from seedgrid.export.tree_picture import write_tree

        entry = self.find(picture)
        found = self.library.work(entry.lineage.work_id)
        there = tuple(each for each in found if not (each.trashed or each.lost))
        write_tree(there or (entry,), Path(path).expanduser())

    def film(self, picture: AnyPicture, path: str | Path) -> Film:
        """Paint a picture again, wait for it, and write what was seen at each step as a film.

        The steps were not kept, so this costs as long as a batch of its width takes; the library
        does not change.

        Args:
            picture: See `AnyPicture`.
            path: Ends in `.webp` or `.gif`; replaced if it exists.
        """
        from seedgrid.export.film import write_film

        film = self.start_film(picture).result()
        write_film(film, Path(path).expanduser())
        return film

    def start_film(
        self,
        picture: AnyPicture,
        watch: Watch | None = None,
        *,
        library: Library | None = None,
        owner: str = "",
        address: str = "",
    ) -> Future[Film]:
        """Have a picture painted again between two runs, and what is seen meanwhile kept.

        Args:
            picture: See `AnyPicture`.
            watch: Follows it, and may stop it.
            library: Where an id is looked up; the studio's own by default.
            owner: Who asks: it counts as a run of theirs.
            address: Where from, as in `RunOptions`.
        """
        entry = self.find(picture, library)
        recorder = _Recorder(watch or Unwatched())
        placement = replace(self.engine.placement, previews=True)
        return self.engine.borrow(
            lambda backend: _paint_film(
                backend, entry.recipe, placement, recorder, wanted=entry.pixels_sha256
            ),
            owner=owner,
            address=address,
            recipes=[entry.recipe],
        )

    def film_s(self, picture: AnyPicture) -> float | None:
        """Say how long a film of a picture will take, by what was painted before; None at first."""
        return self.engine.known_s([self.find(picture).recipe])


def _paint_film(
    backend: Backend, recipe: Recipe, placement: Placement, recorder: _Recorder, *, wanted: str
) -> Film:
    from seedgrid.export.film import Film

    backend.prepare(recipe, placement)
    (end,) = backend.paint([recipe], placement, recorder)
    if isinstance(end, RunError):
        raise end
    return Film(steps=tuple(recorder.seen), end=end, is_same=pixels_sha256(end) == wanted)


class _Recorder:
    """Keeps what the first picture of a batch looks like at each step; all else is the watch's."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.seen: list[Pixels] = []

    @property
    def cancelled(self) -> bool:
        """Whether it should stop."""
        return self._watch.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        """Keep the noise."""
        self.seen = list(previews()[:1])
        self._watch.noise(previews)

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Keep a step; of very many only each n-th, so that about `MAX_FRAMES` are kept."""
        every = -(-total // MAX_FRAMES)
        if number % every == 0 or number == total:
            self.seen += previews()[:1]
        self._watch.step(number, total, previews)

    def tile(self, number: int, total: int) -> None:
        """Pass it on; a tile is no frame."""
        self._watch.tile(number, total)

    def freed(self) -> None:
        """Begin anew."""
        self.seen = []
        self._watch.freed()
