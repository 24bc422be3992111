"""Forgeries: whatever is done to a picture, verify says what is known, and says where."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from painting import PLACEMENT, SilentWatch, one_thread, recipes_for
from pictures import make_lineage
from PIL import Image

from seedgrid.core.errors import RunError
from seedgrid.core.picture import Picture, Pixels, pixels_sha256
from seedgrid.core.recipe import Passport
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.formats import png, png_chunks
from seedgrid.formats.png_chunks import Chunk
from seedgrid.verify import Verdict, read_claim, read_claims, verify

Edit = Callable[[Pixels], Pixels]


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture(scope="module")
def original(backend: DiffusersBackend, model_folder: Callable[[str], Path]) -> bytes:
    """An honest picture of this machine."""
    recipe = recipes_for(backend, model_folder("sd"))[0]
    passport = backend.prepare(recipe, PLACEMENT)
    pixels = backend.paint([recipe], PLACEMENT, SilentWatch())[0]
    assert not isinstance(pixels, RunError)
    return png.encode(
        Picture(pixels=pixels, recipe=recipe, passport=passport, lineage=make_lineage())
    )


def forge(
    data: bytes, edit: Edit | None = None, *, passport: dict[str, Any] | None = None, **image: Any
) -> bytes:
    """Edit pixels and passport, and bring the digest in the file in step with them."""
    record = json.loads(png.read_texts(data)[png.CHUNK_KEY])
    pixels = png.read_pixels(data)
    pixels = pixels if edit is None else edit(pixels.copy())
    record["pixels_sha256"] = pixels_sha256(pixels)
    if passport is not None:
        record["passport"] = passport
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", **image)
    return with_record(buffer.getvalue(), record)


def with_record(data: bytes, record: dict[str, Any]) -> bytes:
    text = png_chunks.utf8_text(png.CHUNK_KEY, json.dumps(record))
    return png_chunks.with_texts(png_chunks.split(data), [text])


def verdict_of(backend: DiffusersBackend, data: bytes, tmp_path: Path) -> Verdict:
    path = tmp_path / "picture.png"
    path.write_bytes(data)
    (verdict,) = verify([read_claim(path)], backend)
    return verdict


def one_pixel(pixels: Pixels) -> Pixels:
    pixels[9, 11, 2] ^= 1
    return pixels


def noise(pixels: Pixels) -> Pixels:
    steps = np.random.default_rng(0).integers(-1, 2, pixels.shape)
    return (pixels.astype(int) + steps).clip(0, 255).astype(np.uint8)


def square(pixels: Pixels) -> Pixels:
    part = pixels[4:12, 20:30].astype(int) + 4
    pixels[4:12, 20:30] = part.clip(0, 255).astype(np.uint8)
    return pixels


EDITS = {"one pixel": one_pixel, "noise of one step": noise, "a square": square}


def test_an_honest_picture_is_identical(
    backend: DiffusersBackend, original: bytes, tmp_path: Path
) -> None:
    """Also when another program has saved it again without loss."""
    assert verdict_of(backend, original, tmp_path).verdict == "identical"
    assert verdict_of(backend, forge(original, compress_level=9), tmp_path).verdict == "identical"


@pytest.mark.parametrize("name", EDITS)
def test_under_the_same_passport_no_edit_is_rounding(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, name: str
) -> None:
    """One step in one pixel, with its digest rewritten, was called close."""
    verdict = verdict_of(backend, forge(original, EDITS[name]), tmp_path)
    assert verdict.verdict == "altered"
    assert verdict.where is not None
    assert any(reason.code == "where" for reason in verdict.reasons)


def test_it_is_said_where(backend: DiffusersBackend, original: bytes, tmp_path: Path) -> None:
    """The smallest rectangle around all that differs."""
    verdict = verdict_of(backend, forge(original, square), tmp_path)
    assert verdict.as_json()["where"] == {"left": 20, "top": 4, "width": 10, "height": 8}


@pytest.mark.parametrize(
    ("name", "word"),
    [("one pixel", "close"), ("noise of one step", "drifted"), ("a square", "drifted")],
)
def test_another_release_excuses_no_more_than_it_was_seen_to_change(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, name: str, word: str
) -> None:
    """A few pixels by one step, not every pixel, and not a square by four."""
    passport = {**passport_in(original), "torch": "2.8.0"}
    verdict = verdict_of(backend, forge(original, EDITS[name], passport=passport), tmp_path)
    assert verdict.verdict == word
    assert "torch" in " ".join(map(str, verdict.reasons))


@pytest.mark.parametrize(
    "change",
    [
        {"python": "2.7.0"},
        {"nonsense": "yes"},
        {"memory_format": "sideways"},
        {"precision": {"nonsense": "high"}},
    ],
)
def test_what_cannot_round_excuses_nothing(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, change: dict[str, Any]
) -> None:
    """A difference of the passport that changes no bit, or that there is not, is never "close"."""
    passport = passport_in(original) | change
    if "precision" in change:
        passport["precision"] = passport_in(original)["precision"] | change["precision"]
    verdict = verdict_of(backend, forge(original, one_pixel, passport=passport), tmp_path)
    assert verdict.verdict in {"altered", "drifted"}


@pytest.mark.parametrize("gone", ["everything", "threads", "determinism", "attention"])
def test_a_passport_that_says_less_excuses_nothing(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, gone: str
) -> None:
    """What is not known is not a named difference; and nobody is blamed for it either."""
    passport = {name: value for name, value in passport_in(original).items() if name != gone}
    passport = {} if gone == "everything" else passport
    verdict = verdict_of(backend, forge(original, one_pixel, passport=passport), tmp_path)
    assert verdict.verdict == "drifted"
    with one_thread():
        same = verdict_of(backend, forge(original, passport=passport), tmp_path)
    assert same.verdict == "identical"


def test_added_transparency_is_not_identical(
    backend: DiffusersBackend, original: bytes, tmp_path: Path
) -> None:
    """The colours are those of the recipe, and nobody sees them."""
    for alpha, word in ((255, "identical"), (254, "altered"), (0, "altered")):
        image = Image.fromarray(png.read_pixels(original)).convert("RGBA")
        image.putpixel((3, 3), (*image.getpixel((3, 3))[:3], alpha))
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        record = json.loads(png.read_texts(original)[png.CHUNK_KEY])
        assert verdict_of(backend, with_record(buffer.getvalue(), record), tmp_path).verdict == word


@pytest.mark.parametrize(
    ("chunk", "word"),
    [
        (Chunk(kind=b"gAMA", data=(45455).to_bytes(4, "big")), "identical"),
        (Chunk(kind=b"sRGB", data=b"\0"), "identical"),
        (Chunk(kind=b"gAMA", data=(20000).to_bytes(4, "big")), "altered"),
        (Chunk(kind=b"iCCP", data=b"x\0\0x"), "altered"),
        (Chunk(kind=b"tRNS", data=b"\0\1\0\2\0\3"), None),
        (Chunk(kind=b"acTL", data=b"\0\0\0\2\0\0\0\0"), "altered"),
    ],
    ids=["usual gamma", "sRGB", "gamma", "profile", "one colour transparent", "animation"],
)
def test_what_shows_other_colours_is_not_identical(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, chunk: Chunk, word: str | None
) -> None:
    """A viewer obeys these chunks; pixels alone do not tell."""
    if word is None:
        colour = png.read_pixels(original)[0, 0]
        chunk = Chunk(kind=b"tRNS", data=b"".join(b"\0" + bytes([value]) for value in colour))
        word = "altered"
    header, *rest = png_chunks.split(original)
    record = png_chunks.utf8_text("x", "y")
    data = png_chunks.with_texts([header, chunk, *rest], [record])
    assert verdict_of(backend, data, tmp_path).verdict == word


@pytest.mark.parametrize("edit", [lambda p: p[:48], lambda p: p.repeat(2, 0).repeat(2, 1)])
def test_a_cropped_or_resized_picture_is_drifted(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, edit: Edit
) -> None:
    """There is nothing to compare, and yet it can be said what it is."""
    verdict = verdict_of(backend, forge(original, edit), tmp_path)
    assert verdict.verdict == "drifted"
    assert any(reason.code == "size" for reason in verdict.reasons)


def test_a_false_digest_is_not_identical(
    backend: DiffusersBackend, original: bytes, tmp_path: Path
) -> None:
    """The pixels are right, the file does not fit itself."""
    record = json.loads(png.read_texts(original)[png.CHUNK_KEY]) | {"pixels_sha256": "ab" * 32}
    verdict = verdict_of(backend, with_record(original, record), tmp_path)
    assert verdict.verdict == "altered"
    assert any(reason.code == "digest" for reason in verdict.reasons)


@pytest.mark.parametrize(
    "change",
    [
        {"scheduler": "Wishful"},
        {"scheduler": "Flow Euler"},
        {"compiled": True},
        {"loras": [{"id": "x", "weights_sha256": "ab" * 32, "scale": 1.0}]},
        {"model": {"id": "nobody/nothing", "revision": "local", "weights_sha256": "ab" * 32}},
        {"width": 63},
        {"num_inference_steps": 150, "scheduler": "LCM"},
    ],
)
def test_one_bad_file_stops_no_other(
    backend: DiffusersBackend, original: bytes, tmp_path: Path, change: dict[str, Any]
) -> None:
    """An unknown scheduler, another family's, a model that is not there: each is a line."""
    record = json.loads(png.read_texts(original)[png.CHUNK_KEY])
    record["recipe"] |= change
    bad, good = tmp_path / "a.png", tmp_path / "b.png"
    bad.write_bytes(with_record(original, record))
    good.write_bytes(original)
    words = {
        verdict.name: verdict.verdict for verdict in verify(read_claims([bad, good])[0], backend)
    }
    assert words[str(good)] == "identical"
    assert words[str(bad)] in {"impossible", "drifted"}


def passport_in(data: bytes) -> dict[str, Any]:
    return dict(json.loads(png.read_texts(data)[png.CHUNK_KEY])["passport"])


def test_an_empty_passport_is_one(original: bytes) -> None:
    """The helper above cuts what it says it cuts."""
    assert png.read(forge(original, passport={})).passport == Passport()
