"""JPEG and WebP files carry the same settings in their EXIF data, in every writer's spelling."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from foreign_files import codes, node
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seedgrid.core.errors import PictureError
from seedgrid.formats import exif
from seedgrid.formats.importers.imported import read_foreign

SETTINGS = "a red fox\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 42, Size: 512x640"
CHINESE = SETTINGS.replace("a red fox", "一只红色的狐狸 🦊")


def photo(fields: dict[int, object], *, kind: str = "JPEG", inner: bool = True) -> bytes:
    """Write a picture with these EXIF fields, in the inner block, or in the main one."""
    block = Image.Exif()
    (block.get_ifd(0x8769) if inner else block).update(fields)
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, kind, exif=block)
    return buffer.getvalue()


@pytest.mark.parametrize("text", [SETTINGS, CHINESE])
@pytest.mark.parametrize(
    ("prefix", "code"),
    [
        (b"UNICODE\0", "utf-16-be"),
        (b"UNICODE\0", "utf-16-le"),
        (b"UNICODE\0\xfe\xff", "utf-16-be"),
        (b"UNICODE\0\xff\xfe", "utf-16-le"),
        (b"UNICODE\0", "utf-8"),
        (b"ASCII\0\0\0", "utf-8"),
        (bytes(8), "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_a_user_comment_in_every_code(text: str, prefix: bytes, code: str) -> None:
    """Piexif writes big-endian, ImageSharp little-endian, others UTF-8 under any name."""
    found = read_foreign(photo({0x9286: prefix + text.encode(code)}))

    assert found.request.prompt == text.split("\n")[0]
    assert found.request.seeds == (42,)
    assert (found.request.width, found.request.height) == (512, 640)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_fooocus_writes_into_the_main_block(kind: str) -> None:
    """With its scheme as the maker's note and its name as the software."""
    data = json.dumps({"prompt": "a fox", "seed": "9", "steps": 30, "resolution": "(1152, 896)"})
    fields: dict[int, object] = {0x9286: data, 0x0131: "Fooocus v2.5.5", 0x927C: "fooocus"}

    found = read_foreign(photo(fields, kind=kind, inner=False))

    assert (found.tool, found.request.seeds, found.request.width) == ("Fooocus", (9,), 1152)


def test_comfyui_as_a_webp() -> None:
    """The graph stands where the camera's model belongs, the workflow where its maker does."""
    sampler = node("KSampler", seed=5, steps=20, cfg=7.0, sampler_name="euler", scheduler="normal")
    graph = json.dumps({"3": sampler, "9": node("SaveImage", images=["3", 0])})
    fields: dict[int, object] = {0x0110: f"prompt:{graph}", 0x010F: "workflow:{}"}

    found = read_foreign(photo(fields, kind="WEBP", inner=False))

    assert (found.tool, found.request.seeds) == ("ComfyUI", (5,))


def test_novelai_as_a_webp() -> None:
    """What are texts of their own in a PNG are one JSON object in the user comment."""
    comment = json.dumps({"prompt": "a fox", "seed": 11, "steps": 28, "sampler": "k_euler"})
    data = {"Software": "NovelAI", "Source": "NovelAI Diffusion V4", "Comment": comment}

    found = read_foreign(photo({0x9286: b"ASCII\0\0\0" + json.dumps(data).encode()}, kind="WEBP"))

    assert (found.tool, found.request.seeds) == ("NovelAI", (11,))
    assert "import_model" in codes(found)


@given(st.data())
def test_damaged_files_give_one_kind_of_error(data: st.DataObject) -> None:
    """Whatever bytes are changed or cut off, it is a request, or one sentence."""
    whole = bytearray(photo({0x9286: b"UNICODE\0" + SETTINGS.encode("utf-16-be")}))
    for place in data.draw(st.lists(st.integers(0, 200), max_size=8)):
        whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))

    with contextlib.suppress(PictureError):
        assert read_foreign(bytes(whole[:cut])).request


def test_a_block_that_leads_nowhere_ends() -> None:
    """Offsets out of the block, into itself, or a million fields are damage, not work."""
    head = b"\xff\xd8\xff\xe1"
    blocks = [
        b"II*\0\x08\0\0\0\xff\xff",
        b"II*\0\x08\0\0\0\x01\0\x69\x87\x04\0\x01\0\0\0\x08\0\0\0",
        b"MM\0*\xff\xff\xff\xff",
        b"XX",
    ]
    for block in blocks:
        segment = b"Exif\0\0" + block
        data = head + (len(segment) + 2).to_bytes(2, "big") + segment + b"\xff\xda\0\0"
        with contextlib.suppress(PictureError):
            assert exif.read_texts(data) == {}
