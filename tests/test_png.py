"""A recipe goes into a PNG and comes out; nothing malformed gets further than one sentence."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import struct
import zlib
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import make_lineage, make_picture, make_recipe
from PIL import Image
from refusing import refused

from seedgrid import __version__
from seedgrid.core.errors import PictureError
from seedgrid.core.recipe import ModelRef, NoiseShare, Upscaler
from seedgrid.formats import png, png_chunks
from seedgrid.formats.own_texts import MARK_KEY, parameters_text, without_version
from seedgrid.storage.unpacking import MAX_METADATA_BYTES


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_chunk(file: bytes, new: bytes) -> bytes:
    """Put a chunk right after IHDR."""
    return file[:33] + new + file[33:]


def ihdr(width: int, height: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


PICTURE = make_picture()
FILE = png.encode(PICTURE)


def test_a_picture_comes_out_as_it_went_in() -> None:
    """Recipe, passport, lineage and pixels survive the file."""
    record, pixels = png.read_checked(FILE)

    assert (record.recipe, record.passport, record.lineage) == (
        PICTURE.recipe,
        PICTURE.passport,
        PICTURE.lineage,
    )
    assert np.array_equal(pixels, PICTURE.pixels)


def test_the_chunk_has_exactly_the_keys_of_the_contract() -> None:
    """Pillow, as any other reader, finds an iTXt chunk `seedgrid` with these five keys."""
    with Image.open(io.BytesIO(FILE)) as image:
        text = image.text["seedgrid"]
        pixels = image.tobytes()
    data = json.loads(text)

    assert list(data) == ["format", "recipe", "passport", "lineage", "pixels_sha256"]
    assert data["format"] == 1
    assert data["pixels_sha256"] == hashlib.sha256(pixels).hexdigest()
    assert b"iTXtseedgrid\0" in FILE
    foreign = dataclasses.replace(PICTURE, recipe=PICTURE.recipe.replace(prompt="狐"))
    text = png.read_texts(png.encode(foreign))["seedgrid"]
    assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


USUAL = "Steps: 8, Sampler: DPM++ 2M, CFG scale: 7.5, Seed: 11, Size: 64x48"
MODEL = ", Model hash: ababababab, Model: bundled"
VARIED = ", Variation seed: 5, Variation seed strength: 0.1"
ONE_SEED = (NoiseShare(seed=5, weight=0.1),)
NETWORK = Upscaler(id="2x", weights_sha256="0" * 64)
TWO_SEEDS = (*ONE_SEED, NoiseShare(seed=7, weight=0.25))


@pytest.mark.parametrize(
    ("changes", "words", "settings"),
    [
        ({"prompt": "a fox,\nrunning"}, "a fox,\nrunning", MODEL),
        ({"negative_prompt": "blur"}, "a fox\nNegative prompt: blur", MODEL),
        ({"noise_mix": ONE_SEED}, "a fox", MODEL + VARIED),
        ({"noise_mix": TWO_SEEDS}, "a fox", MODEL + ', Noise mix: "5: 0.1, 7: 0.25"'),
        ({"start": "f" * 64, "strength": 0.3}, "a fox", MODEL + ", Denoising strength: 0.3"),
        ({"start": "f" * 64, "upscaler": NETWORK}, "a fox", MODEL),
        ({"model": ModelRef(id="狐,", weights_sha256="ab" * 32)}, "a fox", MODEL[:-7] + '"狐,"'),
    ],
)
def test_other_tools_find_the_settings_under_parameters(
    changes: dict[str, Any], words: str, settings: str
) -> None:
    """Prompt, negative prompt, and a last line of settings, letter by letter as they read them."""
    recipe = make_recipe(prompt="a fox", seed=11).replace(**changes)
    text = parameters_text(recipe)
    assert text == f"{words}\n{USUAL}{settings}, RNG: CPU, Version: SeedGrid {__version__}"
    assert without_version(text) == f"{words}\n{USUAL}{settings}, RNG: CPU"
    assert without_version(f"{text}, Other: 1") == f"{text}, Other: 1"


PROMPTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200).filter(
    lambda text: not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
)


@given(prompt=PROMPTS, seed=st.integers(0, 2**32 - 1))
def test_any_words_survive_the_file(prompt: str, seed: int) -> None:
    """Emoji, right-to-left and Chinese words come back letter by letter."""
    picture = make_picture(prompt=prompt, seed=seed, width=32, height=32)
    file = png.encode(picture)

    assert png.read(file).recipe == picture.recipe
    own = {png_chunks.key_of(part).decode(): part for part in png_chunks.split(file)}
    assert png.is_record_as_written(own["seedgrid"])
    assert png.is_parameters_as_written(own["parameters"], picture.recipe)


def test_rewrite_changes_the_lineage_and_nothing_else() -> None:
    """The packed pixels are copied byte by byte, and no second record is left in the file."""
    lineage = make_lineage(change=", artsy")

    file = png.rewrite(FILE, lineage=lineage)

    packed = [part for part in png_chunks.split(FILE) if part.kind == b"IDAT"]
    assert [part for part in png_chunks.split(file) if part.kind == b"IDAT"] == packed
    assert png.read(file).lineage == lineage
    assert png.read(file).recipe == PICTURE.recipe
    assert file.count(b"seedgrid\0") == 1


def test_every_flipped_bit_is_noticed() -> None:
    """Whatever single bit rots in a file, reading it does not give another picture in silence."""
    random = np.random.default_rng(1)
    for position in random.integers(0, len(FILE), 300):
        damaged = bytearray(FILE)
        damaged[position] ^= 1 << int(random.integers(0, 8))
        with pytest.raises(PictureError):
            png.read_checked(bytes(damaged))


def test_every_shorter_file_is_noticed() -> None:
    """A file that ends too early is damaged wherever it ends."""
    for length in [*range(60), *range(60, len(FILE), 97)]:
        with pytest.raises(PictureError):
            png.read_checked(FILE[:length])


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    """Bytes that are no picture give one kind of error."""
    for file in (data, png_chunks.SIGNATURE + data, with_chunk(FILE, b"\0" + data)):
        with pytest.raises(PictureError):
            png.read_checked(file)


def record_text(**changes: object) -> str:
    data = json.loads(png_chunks.texts(png_chunks.split(FILE))["seedgrid"])
    return json.dumps(data | changes)


def replaced(text: str) -> bytes:
    return png_chunks.with_texts(png_chunks.split(FILE), [png_chunks.utf8_text("seedgrid", text)])


BOMB = zlib.compress(bytes(MAX_METADATA_BYTES + 1))
RECIPE = json.loads(record_text())["recipe"]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (b"", "picture_not_png"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * (64 * 2**20), "picture_large"),
        (png_chunks.SIGNATURE + ihdr(30_000, 30_000) + FILE[33:], "picture_large"),
        (png_chunks.SIGNATURE + ihdr(0, 0) + FILE[33:], "picture_damaged"),
        (png_chunks.SIGNATURE + ihdr(32, 32) + FILE[33:], "picture_altered"),
        (png_chunks.SIGNATURE + chunk(b"IEND", b""), "picture_damaged"),
        (with_chunk(FILE, chunk(b"tEXt", b"a\0b") * png_chunks.MAX_CHUNKS), "picture_damaged"),
        (with_chunk(FILE, struct.pack(">I", 2**32 - 1) + b"tEXt"), "picture_damaged"),
        (replaced("[" * 100_000), "picture_record"),
        (replaced("{}"), "picture_record"),
        (replaced("x" * (MAX_METADATA_BYTES + 1)), "picture_text"),
        (replaced(record_text(format=2)), "picture_record"),
        (replaced(record_text(extra=1)), "picture_record"),
        (replaced(record_text(passport={"x": float("nan")})), "picture_record"),
        (replaced(record_text(recipe=RECIPE | {"seed": 2**32})), "picture_record"),
        (replaced(record_text(recipe=RECIPE | {"prompt": "\ud800"})), "picture_record"),
        (replaced(record_text(recipe=RECIPE | {"guidance_scale": 1e999})), "picture_record"),
    ],
)
def test_each_malformed_file_gives_its_sentence(file: bytes, code: str) -> None:
    """Bombs, lies and nonsense are refused by name, before they cost memory."""
    with refused(PictureError, code):
        png.read_checked(file)


def test_packed_texts_are_read() -> None:
    """Other tools pack their texts, in both of the ways that PNG has."""
    packed = zlib.compress("müde fox".encode())
    file = with_chunk(FILE, chunk(b"iTXt", b"a\0\1\0de\0\0" + packed))
    file = with_chunk(file, chunk(b"zTXt", b"b\0\0" + zlib.compress(b"m\xfcde")))
    file = with_chunk(file, chunk(b"tEXt", b"b\0the first one counts"))
    texts = png.read_texts(file)
    assert (texts["a"], texts["b"]) == ("müde fox", "the first one counts")
    assert png.read_texts(with_chunk(FILE, chunk(b"zTXt", b"c\0\0" + packed)))["c"] != ""


def test_texts_beyond_256_kb_are_known_by_name_alone() -> None:
    """A long comment hinders nobody from reading the settings behind it."""
    long = chunk(b"zTXt", b"long\0\0" + zlib.compress(bytes(MAX_METADATA_BYTES + 1)))
    texts = png.read_texts(with_chunk(with_chunk(FILE, chunk(b"tEXt", b"no key")), long))
    assert texts["long"] is None
    assert texts["parameters"] == parameters_text(PICTURE.recipe)
    assert "no key" not in texts


@pytest.mark.parametrize(
    "text",
    [b"iTXta\0\1\0\0\0" + BOMB[:90], b"zTXta\0\0nonsense", b"iTXta\0\0\0\0\0\xff", b"iTXta\0\0"],
)
def test_a_text_that_cannot_be_read_is_damaged(text: bytes) -> None:
    """Whoever wants the texts is told; whoever wants our own record is not concerned."""
    file = with_chunk(FILE, chunk(text[:4], text[4:]))
    with refused(PictureError, "picture_damaged"):
        png.read_texts(file)
    assert png.read(file).recipe == PICTURE.recipe


@pytest.mark.parametrize(
    ("start", "kind"),
    [("", "trainedAlgorithmicMedia"), ("f" * 64, "compositeWithTrainedAlgorithmicMedia")],
)
def test_every_picture_is_marked_as_made_by_a_model(start: str, kind: str) -> None:
    """IPTC's digital source type, as XMP that any reader of XML understands; pixels are the same.

    Source: https://iptc.org/std/photometadata/specification/ (Digital Source Type)
    """
    file = png.encode(dataclasses.replace(PICTURE, recipe=PICTURE.recipe.replace(start=start)))
    packet = png.read_texts(file)[MARK_KEY] or ""
    (description,) = ElementTree.fromstring(packet).iter(f"{RDF}Description")  # noqa: S314 - written above
    assert description.get(f"{IPTC}DigitalSourceType") == (
        f"http://cv.iptc.org/newscodes/digitalsourcetype/{kind}"
    )
    with Image.open(io.BytesIO(file)) as image:
        assert MARK_KEY in image.text
        assert np.array_equal(np.asarray(image), PICTURE.pixels)
    moved = png.rewrite(file, lineage=make_lineage())
    assert png.read_texts(moved)[MARK_KEY] == packet


RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
IPTC = "{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}"


def test_a_reason_names_its_place() -> None:
    """Of a record that is no record at all it is the record."""
    with pytest.raises(PictureError, match=r"record: "):
        png.read(replaced("[]"))
    with pytest.raises(PictureError, match=r"recipe\.seed: "):
        png.read(replaced(record_text(recipe=RECIPE | {"seed": -1})))
    with pytest.raises(PictureError, match="not JSON compliant"):
        png.read(replaced(record_text(passport={"x": float("nan")})))


def test_a_file_with_two_records_is_not_believed() -> None:
    """Which of them counts is each reader's own choice; verify read the first, others the last."""
    second = png_chunks.utf8_text(png.CHUNK_KEY, record_text(recipe=RECIPE | {"seed": 9}))
    zipped = b"seedgrid\0\0" + zlib.compress(b"{}")
    for extra in (chunk(b"iTXt", second.data), chunk(b"zTXt", zipped)):
        with pytest.raises(PictureError, match="two records"):
            png.read(with_chunk(FILE, extra))
