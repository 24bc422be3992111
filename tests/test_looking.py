"""A tree as one picture, and the film of a picture: by Python, by command, by the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI
from pictures import make_lineage, make_picture
from PIL import Image, ImageSequence
from starlette.testclient import TestClient

from seedgrid.cli import main
from seedgrid.core.errors import InputError
from seedgrid.core.picture import Entry, new_id
from seedgrid.core.recipe import NoiseShare, Passport, describe_mix
from seedgrid.diffusion.backend import Placement, Unwatched
from seedgrid.export.film import MAX_FRAMES, Film, PreviewRecorder, durations_ms, write_film
from seedgrid.export.tree_picture import draw_tree, write_tree
from seedgrid.export.words import caption_of
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.answers import make_answers
from seedgrid.web.server.exports import export_routes

Rounds = Sequence[tuple[int | None, int, int]]
"""Of each round: that which it came from, the picture there, and how many pictures it has."""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    placement = Placement(previews=False)
    with Studio(library=tmp_path / "art", backend=FakeBackend(), placement=placement) as studio:
        yield studio


@pytest.fixture
def client(studio: Studio) -> TestClient:
    app = FastAPI()
    app.include_router(export_routes(make_answers(studio)))
    return TestClient(app)


def rows_only(rounds: Rounds, folder: Path) -> list[Entry]:
    """Make the entries of a work; none has a file."""
    work, entries = new_id(), []
    ids: list[list[str]] = []
    recipe = make_picture().recipe
    for parent, cell, count in rounds:
        above = None if parent is None else ids[parent][cell]
        ids.append([new_id() for _ in range(count)])
        round_id = new_id()
        for at, picture_id in enumerate(ids[-1]):
            lineage = make_lineage(
                picture_id=picture_id,
                parent_id=above,
                work_id=work,
                round_id=round_id,
                cell=at,
            )
            entries.append(
                Entry(
                    path=folder / "gone.png",
                    recipe=recipe,
                    passport=Passport(),
                    lineage=lineage,
                    pixels_sha256="0" * 64,
                    file_sha256="0" * 64,
                )
            )
    return entries


def test_a_tree_without_files_keeps_its_places(tmp_path: Path) -> None:
    """Pictures that are gone leave frames; a round whose parent is gone stands at the top."""
    entries = rows_only([(None, 0, 4), (0, 1, 4), (0, 3, 4), (2, 0, 1)], tmp_path)
    width, bands = draw_tree(entries)
    assert len({band.draw().width for band in bands} | {width}) == 1
    orphans = [entry for entry in entries if entry.lineage.round_id != entries[0].lineage.round_id]
    assert draw_tree(orphans)[0] > width / 2
    write_tree(entries, tmp_path / "tree.png")
    with pytest.raises(InputError, match="jpg"):
        write_tree(entries, tmp_path / "tree.jpg")
    with pytest.raises(InputError):
        draw_tree([])


def test_a_tree_speaks_the_language_of_its_page(tmp_path: Path) -> None:
    """Seeds and shares of noise are said in it, words and settings stay as they were written."""
    recipe = make_picture(seed=7).recipe
    mixed = recipe.model_copy(update={"noise_mix": (NoiseShare(seed=11, weight=0.1),)})
    assert caption_of(recipe, ", artsy", "zh") == "种子 7 · artsy"
    assert caption_of(mixed, describe_mix(mixed), "ko") == "시드 7 · 시드 11의 10%"
    assert caption_of(mixed, describe_mix(mixed), "none") == "seed 7 · 10% of seed 11"
    entries = rows_only([(None, 0, 2), (0, 1, 2)], tmp_path)
    for name in ("zh", "en"):
        write_tree(entries, tmp_path / f"{name}.png", name)
    there = [Image.open(tmp_path / f"{name}.png").tobytes() for name in ("zh", "en")]
    assert there[0] != there[1]


WIDE: Rounds = [(None, 0, 4), *[(0, at % 4, 4) for at in range(249)]]
DEEP: Rounds = [(None, 0, 4), *[(at, 3, 4) for at in range(249)]]
COMB: Rounds = [(None, 0, 4), *[(at - at % 2, at % 4, 4) for at in range(249)]]


@pytest.mark.parametrize("rounds", [WIDE, DEEP, COMB, [(None, 0, 1000)]])
def test_a_thousand_pictures_are_one_row_in_memory(tmp_path: Path, rounds: Rounds) -> None:
    """The more there are, the smaller they are; what is drawn at once stays a few megabytes."""
    width, bands = draw_tree(rows_only(rounds, tmp_path))
    height = sum(band.height for band in bands)
    assert max(width, height) < 33_000
    assert width * height < 200_000_000  # A staircase of picks is the largest.
    assert max(band.height for band in bands) * width * 3 < 15_000_000
    assert bands[1].draw().size == (width, bands[1].height)


@pytest.mark.parametrize(
    "rounds",
    [
        [(None, 0, 1), *[(at - at % 2, 0, 1) for at in range(999)]],  # 19,046 by 41,121 pixels
        [(None, 0, 4), *[(0, 0, 4)] * 1000],  # a row of 128,000 pixels
    ],
)
def test_a_tree_that_nobody_could_open_is_refused(tmp_path: Path, rounds: Rounds) -> None:
    """A thousand tiny pictures, well placed, kept a processor for 13 s and made 783 megapixels."""
    entries = rows_only(rounds, tmp_path)
    with pytest.raises(InputError, match="pixels"):
        write_tree(entries, tmp_path / "tree.png")
    assert not list(tmp_path.iterdir())


def _length_ms(frame: Image.Image) -> int:
    frame.load()
    return int(frame.info["duration"])


def test_a_film_shows_every_step_and_keeps_the_library(studio: Studio, tmp_path: Path) -> None:
    """The noise, each step, the end; bit for bit the picture, which is kept once."""
    (picture,) = studio.grid("a fox", seeds="7", width=64, height=64, num_inference_steps=5)
    for name, kind in (("way.webp", "WEBP"), ("way.gif", "GIF")):
        film = studio.film(picture, tmp_path / name)
        assert film.is_same
        assert len(film.steps) == 6
        with Image.open(tmp_path / name) as image:
            assert image.format == kind
            assert image.size == (64, 64)
            lengths = [_length_ms(frame) for frame in ImageSequence.Iterator(image)]
        assert sum(lengths) == sum(durations_ms(6))
    assert len(studio.library.search().entries) == 1
    with pytest.raises(InputError, match="mp4"):
        write_film(film, tmp_path / "way.mp4")


def test_a_film_of_very_many_steps_is_bounded() -> None:
    """Of a thousand steps so many are kept, the last among them; what begins anew begins anew."""
    pixels = np.zeros((2, 2, 3), np.uint8)
    shown: list[int] = []

    recorder = PreviewRecorder(Unwatched())
    for _ in range(2):
        recorder.freed()
        recorder.noise(lambda: (pixels, pixels))
        for number in range(1, 1001):
            recorder.step(number, 1000, lambda n=number: shown.append(n) or (pixels,))  # type: ignore[misc]
    assert len(recorder.frames) == MAX_FRAMES + 1
    assert shown[-1] == 1000
    assert sum(durations_ms(MAX_FRAMES + 1)) < 12_000


def test_a_large_picture_gives_a_small_film(tmp_path: Path) -> None:
    """No side is longer than 512 px; the proportions stay."""
    end = np.zeros((1536, 1024, 3), np.uint8)
    write_film(Film(steps=(end[:48, :32],), end=end, is_same=True), tmp_path / "large.webp")
    with Image.open(tmp_path / "large.webp") as image:
        assert image.size == (341, 512)


def test_the_server_hands_them_out(client: TestClient, studio: Studio) -> None:
    """By an id that one was shown, and by no other; the cost is told before."""
    run = studio.grid("a fox", seeds="0-1", width=64, height=64, num_inference_steps=2)
    studio.library.trash(run[1].id)
    wanted = run[0].id
    assert client.get(f"/seedgrid/tree/{wanted}.png").content.startswith(b"\x89PNG")
    (slide,) = client.get(f"/seedgrid/tree/{wanted}.json").json()
    assert (slide["id"], slide["prompt"], slide["seed"]) == (wanted, "a fox", 0)
    cost = client.get(f"/seedgrid/film/{wanted}.json").json()
    assert cost["steps"] == 2
    assert cost["seconds"] > 0
    film = client.post("/seedgrid/film", json={"id": wanted, "kind": "gif"})
    assert film.content.startswith(b"GIF")
    assert film.headers["X-SeedGrid-Same"] == "true"
    for path in (f"tree/{new_id()}.png", f"film/{new_id()}.json"):
        assert client.get(f"/seedgrid/{path}").status_code == 404
    for body in ({"id": new_id()}, {"id": wanted, "kind": "exe"}):
        assert client.post("/seedgrid/film", json=body).status_code in (404, 422)
    for body in ({}, {"id": "../x"}, {"id": wanted, "kind": 3}, [1]):
        assert client.post("/seedgrid/film", json=body).status_code == 422


@pytest.mark.usefixtures("fake")
def test_by_command(library_folder: Path, tmp_path: Path) -> None:
    """`export --film`, of a picture in the library."""
    with Studio(library=library_folder, backend=FakeBackend()) as studio:
        (one,) = studio.grid("a fox", seeds="1", width=64, height=64, num_inference_steps=2)
    film = tmp_path / "film.webp"
    assert main(["export", one.id, "--film", str(film), "--library", str(library_folder)]) == 0
    assert film.stat().st_size > 100
