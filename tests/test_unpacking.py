"""Pictures of strangers are weighed before they are unpacked, and wait for each other."""

from __future__ import annotations

import ast
import io
import json
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import ROOT, run_python
from foreign_files import blank_png
from pictures import make_picture
from PIL import Image, ImageOps
from refusing import refused

from seedgrid.core.errors import PictureError
from seedgrid.formats import png, png_chunks
from seedgrid.storage import starts, unpacking
from seedgrid.storage.unpacking import unpacked

MAY_OPEN = {"storage/unpacking.py", "core/picture.py"}
"""The one place, and one that unpacks nothing but the size of a recipe."""

CHILD = """
import json, sys
from pathlib import Path
from seedgrid.core.errors import SeedGridError
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.storage import starts
from seedgrid.verify.claim import read_claim
from seedgrid.web.actions.library import _found_by_pixels

library = Library(Path(sys.argv[1]) / "library")

def held(name):
    status = Path("/proc/self/status").read_text()
    return int(status.split(name + ":")[1].split()[0]) // 1024

def drop(path):
    return [_found_by_pixels(each, library) for each in take_in(library, [path])][0]

def begin(path):
    return starts.read_picture(png.read_bytes(path))

def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")

drop(Path(sys.argv[1]) / "a first one.png")  # What is imported with it is no file's cost.
told = []
for path in sorted(Path(sys.argv[1]).glob("*.*")):
    for work in (drop, begin, read_claim, png.read_size):
        Path("/proc/self/clear_refs").write_text("5")
        before, said, calls = held("VmRSS"), "done", 0
        sys.setprofile(count)
        try:
            answer = work(path)
            if getattr(answer, "error", None):
                said = answer.error.code
        except SeedGridError as error:
            said = error.code
        sys.setprofile(None)
        told.append((path.name, work.__name__, held("VmHWM") - before, said, calls))
print(json.dumps(told))
"""

Costs = dict[tuple[str, str], tuple[int, str, int]]
"""By file and door: the most memory that it took, in MB, what was said, and the calls made."""


def costs_of(folder: Path) -> Costs:
    """Give each file of a folder to every door, in a process of its own."""
    (folder / "a first one.png").write_bytes(png.encode(make_picture(seed=99)))
    environment = {"SEEDGRID_PUBLIC": "1", "SEEDGRID_CACHE": str(folder / "cache")}
    done = run_python("-W", "ignore", "-c", CHILD, folder, env=environment)
    return {
        (name, work): (peak, said, calls)
        for name, work, peak, said, calls in json.loads(done.stdout)
    }


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the largest that was held")
def test_a_huge_picture_of_a_stranger_takes_no_more_than_it_may(tmp_path: Path) -> None:
    """64 megapixels in a megabyte once took 0.7 to 1.2 GB at every door, several at a time."""
    (tmp_path / "clear.png").write_bytes(blank_png(8000, 8000, colour=6))
    (tmp_path / "plain.png").write_bytes(blank_png(8000, 8000, colour=2))
    (tmp_path / "grey.png").write_bytes(blank_png(6000, 6000, colour=0))
    ours = png_chunks.split(png.encode(make_picture()))
    texts = [chunk for chunk in ours if chunk.kind in (b"iTXt", b"tEXt")]
    (tmp_path / "ours.png").write_bytes(blank_png(8000, 8000, colour=6, more=texts))
    costs = costs_of(tmp_path)
    refused = {costs[name, "begin"][1] for name in ("clear.png", "plain.png", "ours.png")}
    assert refused == {"picture_large"}
    assert costs["grey.png", "begin"][1] == costs["ours.png", "read_claim"][1] == "done"
    assert costs.pop(("grey.png", "begin"))[0] < 256  # And the smaller one that comes of it.
    assert max(peak for peak, *_ in costs.values()) < 40


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a long EXIF block.png": lambda: ours_with(b"eXIf", b"MM\0*" + bytes(60 * 2**20)),
    "a packed record.png": lambda: ours_with(b"zTXt", b"seedgrid\0\0" + BOMB),
    "many packed texts.png": lambda: ours_with(b"zTXt", b"a\0\0" + SMALL_BOMB, count=9000),
    "many names.png": lambda: ours_with(b"tEXt", b"a" * 79 + b"\0" + bytes(6000), count=9000),
    "many EXIF blocks.jpg": lambda: photo(segment(b"Exif\0\0" + bytes(65_000)) * 950),
    "fields that share their bytes.jpg": lambda: photo(segment(shared_fields())),
    "a long EXIF block.webp": lambda: with_webp_block(b"EXIF", bytes(60 * 2**20)),
}
"""Files of which the metadata alone cost seconds of the interpreter, or gigabytes."""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the largest that was held")
def test_no_metadata_cost_more_than_their_file(tmp_path: Path) -> None:
    """Not a quarter of a gigabyte, nor more calls than parts may be there, at any door."""
    for name, make in HOSTILE.items():
        (tmp_path / name).write_bytes(make())
    costs = costs_of(tmp_path)
    assert len(costs) == 4 * (len(HOSTILE) + 1)
    assert not {door: peak for door, (peak, *_) in costs.items() if peak > 256}
    assert not {door: calls for door, (*_, calls) in costs.items() if calls > 1_000_000}
    for name in HOSTILE:
        if name.endswith(".png") and name != "a packed record.png":
            assert costs[name, "read_claim"][1] == costs[name, "drop"][1] == "done", name


BOMB = zlib.compress(bytes(150 * 2**20), 9)
SMALL_BOMB = zlib.compress(bytes(2**20), 9)


def ours_with(kind: bytes, data: bytes, *, count: int = 1) -> bytes:
    """Put chunks into a picture of ours, before its own texts."""
    head, *rest = png_chunks.split(png.encode(make_picture(seed=count)))
    added = [png_chunks.Chunk(kind=kind, data=data)] * count
    return png_chunks.SIGNATURE + b"".join(map(png_chunks.packed, [head, *added, *rest]))


def photo(parts: bytes) -> bytes:
    """Put segments into a JPEG, before its pixels."""
    target = io.BytesIO()
    Image.new("RGB", (8, 8)).save(target, "JPEG")
    return target.getvalue()[:2] + parts + target.getvalue()[2:]


def segment(data: bytes) -> bytes:
    return b"\xff\xe1" + (len(data) + 2).to_bytes(2, "big") + data


def shared_fields() -> bytes:
    """A block that turns the picture, with 5,000 fields that all point at the same 60 KB."""
    fields = b"".join(
        struct.pack("<HHII", 0x0112, 3, 1, 6)
        if not tag
        else struct.pack("<HHII", tag, 7, 60_000, 0)
        for tag in range(5000)
    )
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 5000) + fields + bytes(4)


def with_webp_block(kind: bytes, data: bytes) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (8, 8)).save(target, "WEBP", exif=b"Exif\0\0", xmp=b"x")
    body = target.getvalue()[12:] + kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def test_heavy_pictures_wait_for_each_other() -> None:
    """One at a time, whoever brought them; small ones do not wait."""
    heavy, small = blank_png(6000, 5000, colour=2), blank_png(10, 10, colour=2)
    with unpacked(heavy):
        assert unpacking._large_picture_lock.locked()
        with unpacked(small):
            pass
    assert not unpacking._large_picture_lock.locked()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("how", [2, 6])
def test_a_photograph_is_upright(kind: str, how: int) -> None:
    """It is turned as Pillow turns it, without Pillow reading its EXIF data."""
    image = Image.linear_gradient("L").crop((0, 0, 256, 128)).convert("RGB")
    image.paste("red", (0, 0, 64, 64))
    target, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = how
    image.save(target, kind, exif=exif, **({} if kind == "PNG" else {"quality": 100}))
    with Image.open(target) as saved:
        upright = ImageOps.exif_transpose(saved).convert("RGB")
    assert np.array_equal(starts.read_picture(target.getvalue()), np.asarray(upright))


@pytest.mark.parametrize(
    ("mode", "kind", "options", "is_heavy"),
    [
        ("RGB", "JPEG", {"progressive": True}, True),
        ("CMYK", "JPEG", {}, False),  # Unpacked at half its size.
        ("RGB", "JPEG", {"exif": b"Exif\0\0\xff\xda\xff\xda"}, False),  # Scans of a thumbnail
        ("RGB", "WEBP", {}, True),
        ("P", "PNG", {}, True),
    ],
)
def test_pictures_of_every_kind_are_weighed(
    mode: str,
    kind: str,
    options: dict[str, object],
    is_heavy: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a large one takes is known before it is unpacked; on one's own machine it may."""
    target = io.BytesIO()
    Image.new(mode, (4400, 4400)).save(target, kind, **options)
    monkeypatch.setenv("SEEDGRID_MAX_UNPACKED_MB", "1")
    if is_heavy:
        with refused(PictureError, "picture_large"):
            starts.read_picture(target.getvalue())
        monkeypatch.setenv("SEEDGRID_MAX_UNPACKED_MB", "none")
    assert starts.read_picture(target.getvalue()).shape == (2048, 2048, 3)


def test_nobody_else_opens_pictures() -> None:
    """Another door would have no bound."""
    found = set()
    for path in (ROOT / "seedgrid").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("Image.open", "PIL.open"):
                found.add(path.relative_to(ROOT / "seedgrid").as_posix())
    assert found == MAY_OPEN
