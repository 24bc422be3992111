"""What is fuzzed: each reader of what comes from outside, and the inputs to begin from."""

from __future__ import annotations

import atexit
import io
import json
import shutil
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from seedgrid.core.checks import parse_seeds
from seedgrid.core.errors import InputError
from seedgrid.core.picture import Lineage, Picture
from seedgrid.core.recipe import Passport
from seedgrid.core.request import Request, resolve
from seedgrid.formats import png
from seedgrid.formats.importers.imported import read_foreign
from seedgrid.formats.links import read_link
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.models.files import count_parameters, read_header
from seedgrid.testing.fake import FAKE_CARD

_A1111: Final = (
    "a fox, <lora:paint:0.8>\nNegative prompt: blurry\nSteps: 20, Sampler: DPM++ 2M Karras, "
    "CFG scale: 7, Seed: 42, Size: 512x768, Model hash: 6ce0161689, Model: sd15, Variation seed: 7,"
    ' Variation seed strength: 0.2, Lora hashes: "paint: 0a1b2c3d", Version: v1.10.1'
)
_COMFY: Final = {
    "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
    "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "a fox", "clip": ["1", 1]}},
    "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["1", 1]}},
    "4": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 512}},
    "5": {
        "class_type": "KSampler",
        "inputs": {
            "seed": 42,
            "steps": 20,
            "cfg": 7.0,
            "sampler_name": "euler",
            "scheduler": "normal",
            "model": ["1", 0],
            "positive": ["2", 0],
            "negative": ["3", 0],
            "latent_image": ["4", 0],
        },
    },
}
_INVOKE: Final = {"positive_prompt": "a fox", "seed": 42, "steps": 20, "width": 512, "height": 512}


@dataclass(frozen=True, kw_only=True)
class Target:
    """One reader.

    Attributes:
        read: Reads an input; raises `InputError` for what it refuses, and nothing else.
        seeds: Good inputs to begin from.
        mend: Puts right what a random change breaks first, as checksums do, so that the change is
            read at all.
    """

    read: Callable[[bytes], object]
    seeds: Sequence[bytes]
    mend: Callable[[bytes], bytes] = bytes


def _picture() -> bytes:
    asked = Request(prompt="a fox", seeds=(42,), width=64, height=64, num_inference_steps=2)
    recipe = resolve(asked, FAKE_CARD)[0]
    pixels = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
    passport = Passport(seedgrid="0", device="cpu", threads=1)
    lineage = Lineage(
        picture_id="1" * 32,
        work_id="2" * 32,
        round_id="3" * 32,
        cell=0,
        created_at="2026-11-21T12:00:00.000Z",
    )
    return png.encode(Picture(pixels=pixels, recipe=recipe, passport=passport, lineage=lineage))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _foreign(**texts: str) -> bytes:
    size = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", size)]
    parts += [_chunk(b"tEXt", f"{key}\0{text}".encode("latin-1")) for key, text in texts.items()]
    return b"".join((*parts, _chunk(b"IDAT", zlib.compress(b"\0" * 4)), _chunk(b"IEND", b"")))


def with_checksums(data: bytes) -> bytes:
    """Give each chunk of a PNG file, as far as they can be told, the checksum it should have."""
    mended, place = bytearray(data), 8
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        end = place + 8 + length
        if end + 4 > len(data):
            break
        struct.pack_into(">I", mended, end, zlib.crc32(data[place + 4 : end]))
        place = end + 4
    return bytes(mended)


def _photo() -> bytes:
    from PIL import Image

    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + _A1111.encode("utf-16-be")
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def _zip(how: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as bundle:
        bundle.writestr("a.png", b"\x89PNG" * 20)
        bundle.writestr("b/ü.png", b"12345" * 20)
    return buffer.getvalue()


def _read_zip(data: bytes) -> int:
    path = _scratch("fuzzed.zip", data)
    return len(list(take_in(Library(path.with_name("never made")), [path])))


def _safetensors(header: object) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * 16


def _read_safetensors(data: bytes) -> int:
    return count_parameters(read_header(_scratch("fuzzed.safetensors", data), "fuzzed"))


def with_length(data: bytes) -> bytes:
    """Give a safetensors file a header that ends where its last brace is."""
    end = data.rfind(b"}") + 1
    return struct.pack("<Q", end - 8) + data[8:] if end > 8 else data


def _scratch(name: str, data: bytes) -> Path:
    path = _FOLDER / name
    path.write_bytes(data)
    return path


def _faulty(data: bytes) -> None:
    """Has one fault of each kind."""
    if b"crash" in data:
        raise RecursionError
    if b"slow" in data:
        end_s = time.thread_time() + 1.2
        while time.thread_time() < end_s:
            pass
    if b"large" in data:
        bytearray(400 * 1024**2)


_FOLDER: Final = Path(tempfile.mkdtemp(prefix="seedgrid-fuzz-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
_TENSOR: Final[dict[str, Any]] = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace"))


TARGETS: Final[dict[str, Target]] = {
    "png": Target(read=png.read_checked, seeds=[_picture()], mend=with_checksums),
    "imports": Target(
        read=read_foreign,
        seeds=[
            _foreign(parameters=_A1111),
            _foreign(prompt=json.dumps(_COMFY)),
            _foreign(invokeai_metadata=json.dumps(_INVOKE)),
            _foreign(Software="NovelAI", Comment=json.dumps({"prompt": "a fox", "seed": 1})),
            _photo(),
        ],
        mend=with_checksums,
    ),
    "links": Target(
        read=_text(read_link),
        seeds=[
            b"prompt=a+fox&seeds=0-3&steps=20&guidance=7.5&size=512x512&scheduler=DDIM",
            b"prompt=%F0%9F%A6%8A&negative=blurry&model=org/name@main&mix=42:0.2,7:0.1",
        ],
    ),
    "seeds": Target(read=_text(parse_seeds), seeds=[b"0-3", b"1, 2 7-9", b"7, 11, 42"]),
    "zip": Target(
        read=_read_zip,
        seeds=[
            _zip(how)
            for how in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
                zipfile.ZIP_BZIP2,
                zipfile.ZIP_LZMA,
            )
        ],
    ),
    "safetensors": Target(
        read=_read_safetensors,
        seeds=[
            _safetensors({"weight": _TENSOR}),
            _safetensors({"__metadata__": {"format": "pt"}, "weight": _TENSOR}),
        ],
        mend=with_length,
    ),
}

CONTROL: Final = Target(read=_faulty, seeds=[b"a crash", b"slow and large"])

REFUSED: Final = InputError
