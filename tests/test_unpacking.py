"""Pictures of strangers are weighed before they are unpacked, and wait for each other."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from foreign_files import blank_png
from pictures import make_picture
from PIL import Image, UnidentifiedImageError

from seedgrid.core.errors import PictureError
from seedgrid.formats import png, png_chunks
from seedgrid.storage import starts, unpacking
from seedgrid.storage.unpacking import unpacked

ROOT = Path(__file__).parent.parent
MAY_OPEN = {"seedgrid/storage/unpacking.py", "seedgrid/export/sheets.py"}
"""The one place, and one that opens what it has just written."""

CHILD = """
import json, sys
from pathlib import Path
from seedgrid.core.errors import SeedGridError
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.storage import starts
from seedgrid.verify import read_claim
from seedgrid.web.actions.library import _known_by_pixels

library = Library(Path(sys.argv[1]) / "library")

def held(name):
    status = Path("/proc/self/status").read_text()
    return int(status.split(name + ":")[1].split()[0]) // 1024

def drop(path):
    return [_known_by_pixels(each, library) for each in take_in(library, [path])][0]

def begin(path):
    return starts.read_picture(png.read_bytes(path))

told = []
for path in sorted(Path(sys.argv[1]).glob("*.png")):
    for work in (drop, begin, read_claim, png.read_size):
        Path("/proc/self/clear_refs").write_text("5")
        before, said = held("VmRSS"), "done"
        try:
            work(path)
        except SeedGridError as error:
            said = error.code
        told.append((path.stem, work.__name__, held("VmHWM") - before, said))
print(json.dumps(told))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the largest that was held")
def test_a_huge_picture_of_a_stranger_takes_no_more_than_it_may(tmp_path: Path) -> None:
    """64 megapixels in a megabyte once took 0.7 to 1.2 GB at every door, several at a time."""
    (tmp_path / "clear.png").write_bytes(blank_png(8000, 8000, colour=6))
    (tmp_path / "grey.png").write_bytes(blank_png(7000, 7000, colour=0))
    ours = png_chunks.split(png.encode(make_picture()))
    texts = [chunk for chunk in ours if chunk.kind in (b"iTXt", b"tEXt")]
    (tmp_path / "ours.png").write_bytes(blank_png(8000, 8000, colour=6, more=texts))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"SEEDGRID_PUBLIC": "1", "SEEDGRID_CACHE": str(tmp_path / "cache")},
    )
    told = json.loads(done.stdout)
    peaks = {(name, work): peak for name, work, peak, _ in told}
    said = {(name, work): words for name, work, _, words in told}
    assert said["clear", "begin"] == said["ours", "begin"] == "picture_large"
    assert said["grey", "begin"] == said["ours", "read_claim"] == "done"
    assert peaks.pop(("grey", "begin")) < 256 + 100  # And the smaller one that comes of it.
    assert max(peaks.values()) < 40


def test_heavy_pictures_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pictures of 120 MB two fit into 256, the third waits, small ones do not."""
    monkeypatch.setenv("SEEDGRID_MAX_UNPACKED_MB", "256")
    decided, inside = threading.Event(), threading.Event()

    class Told(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            decided.set()
            return super().wait(timeout)

    monkeypatch.setattr(unpacking._room, "_changed", Told())
    heavy, small = blank_png(6000, 5000, colour=2), blank_png(10, 10, colour=2)

    def third() -> None:
        with unpacked(heavy):
            inside.set()
            decided.set()

    with ThreadPoolExecutor(1) as pool, unpacked(heavy):
        with unpacked(heavy):
            going = pool.submit(third)
            assert decided.wait(60)
            assert not inside.is_set()
            with unpacked(small):
                pass
        going.result(60)
    assert unpacking._room._bytes == 0


def _scanned_again() -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (3000, 3000)).save(target, "JPEG", progressive=True)
    data = target.getvalue()
    return data[:-2] + data[data.rindex(b"\xff\xda") : -2] * 200 + data[-2:]


def _two_headers() -> bytes:
    first, second = blank_png(10, 10, colour=2), blank_png(9000, 9000, colour=2)
    return first[:33] + second[8:]


def _animated() -> bytes:
    marks = [("acTL", bytes([0, 0, 0, 2, 0, 0, 0, 0])), ("fcTL", bytes(26))]
    more = [png_chunks.Chunk(kind=kind.encode(), data=data) for kind, data in marks]
    return blank_png(5000, 5000, colour=6, more=more)


@pytest.mark.parametrize("make", [_scanned_again, _two_headers, _animated])
def test_what_costs_more_than_its_size_says_is_refused(make: Callable[[], bytes]) -> None:
    """141 bytes of a JPEG are a walk over all its pixels, and a file may hold 400,000 of them."""
    with pytest.raises(UnidentifiedImageError), unpacked(make(), ("PNG", "JPEG")):
        pass
    with pytest.raises(PictureError):
        starts.read_picture(make())


@pytest.mark.parametrize(
    ("mode", "kind", "options", "is_heavy"),
    [
        ("RGB", "JPEG", {"progressive": True}, True),
        ("CMYK", "JPEG", {}, False),  # Unpacked at half its size.
        ("RGB", "WEBP", {}, True),
        ("P", "PNG", {}, True),
    ],
)
def test_pictures_of_every_kind_are_weighed(
    mode: str,
    kind: str,
    options: dict[str, bool],
    is_heavy: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a large one takes is known before it is unpacked; on one's own machine it may."""
    target = io.BytesIO()
    Image.new(mode, (4400, 4400)).save(target, kind, **options)
    monkeypatch.setenv("SEEDGRID_MAX_UNPACKED_MB", "1")
    if is_heavy:
        with pytest.raises(PictureError) as caught:
            starts.read_picture(target.getvalue())
        assert caught.value.code == "picture_large"
        monkeypatch.setenv("SEEDGRID_MAX_UNPACKED_MB", "none")
    assert starts.read_picture(target.getvalue()).shape == (2048, 2048, 3)


def test_white_paper_band_by_band_is_white_paper() -> None:
    """A picture with holes, larger than it may be and turned, comes out as it did at once."""
    image = Image.effect_noise((300, 200), 80).convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    at_once = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    assert unpacking.on_white(image).tobytes() == at_once.tobytes()
    assert unpacking.as_rgb(image).tobytes() == image.convert("RGB").tobytes()


def test_nobody_else_opens_pictures() -> None:
    """Another door would have no bound."""
    found = set()
    for path in (ROOT / "seedgrid").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("Image.open", "PIL.open"):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == MAY_OPEN
