"""Captions and settings: where each may stand, and how else they may be spelled.

A caption is no forgery, and a picture's own words are none either, whatever they hold.
"""

from __future__ import annotations

import html
import json
import struct
from collections.abc import Iterator
from typing import Final

import numpy as np
from PIL import Image

from seedgrid.formats import png, png_chunks
from seedgrid.formats.png_chunks import Chunk
from tests.forgeries.files import Named, chunk, xmp
from tests.forgeries.hidden import raw_profile, user_comment
from tests.forgeries.originals import Original
from tests.forgeries.profiles import srgb, srgb_by_formula

ODD_WORDS: Final = (
    "a red fox &amp; a blue one, seed: 7, steps: 20",
    "fox\nSteps: 9, Sampler: Euler a, CFG scale: 7, Seed: 42, Size: 512x512",
    "a fox <b>&lt;&#51;</b> \\u0066ox ｓｅｅｄ：９ ｓｔｅｐｓ：９",
    'Füchse, 狐, {"prompt": "a ship", "seed": 9, "steps": 9}, prompt: "yes"',
)
"""What somebody may type, and what was taken for another tool's settings, or spelled otherwise."""

_OTHERS: Final = "a ship\nSteps: 9, Sampler: Euler, CFG scale: 7, Seed: 9, Size: 64x64"


def shown_or_told_otherwise(it: Original) -> Iterator[Named]:
    """Settings that are not the picture's, in other places and spellings; other colours."""
    yield from _told(it)
    yield from _turned(it)
    image = Image.fromarray(it.pixels)
    for name, change in {
        "brighter": lambda light: light * 1.01,
        "a little darker": lambda light: light**1.02,
        "with a spike": lambda light: np.where(np.arange(1024) // 8 == 50, 0.9, light),
        "inverted": lambda light: light[::-1],
        "of two values": lambda light: np.round(light),
        "whose bright ends are cut": lambda light: np.minimum(light, 0.8),
    }.items():
        yield f"a profile of sRGB, {name}", it.from_image(image, icc_profile=srgb(change))
    for order in "<>":
        yield f"EXIF says Adobe RGB {order}", it.with_chunks(chunk(b"eXIf", _adobe_rgb(order)))
    yield "cICP of a wide space", it.with_chunks(chunk(b"cICP", b"\x0c\x0d\x00\x01"))
    yield "cICP of video's range", it.with_chunks(chunk(b"cICP", b"\x01\x0d\x00\x00"))
    near = struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6100)
    yield "primaries that are nearly sRGB's", it.with_chunks(chunk(b"cHRM", near))


def _told(it: Original) -> Iterator[Named]:
    for key, value in (("Seed", "9"), ("Prompt", "a ship"), ("NEGATIVE_PROMPT", "dull")):
        yield f"“{key}” alone", it.with_chunks(_text(key, value))
    yield "seed and steps apart", it.with_chunks(_text("seed", "9"), _text("steps", "9"))
    settings = {"prompt": "a ship", "seed": 9, "steps": 9}
    spelled = json.dumps(settings).replace("e", "\\u0065")
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in "Seed:9,Steps:9")
    for name, text in {
        "JSON's escapes": spelled,
        "HTML's": "Seed&#58; 9, Steps&#x3a; 9",
        "wide letters": wide,
        "Python's way": "dict(seed=9, steps=9)",
        "capitals": "SEED = 9; STEPS = 9",
        "quotes": "{'seed':'9','num_inference_steps':'9'}",
        "its own seed and another number of steps": f"Seed: {it.recipe.seed}, Steps: 99",
        "its own steps and another seed": f"Seed: 9, Steps: {it.recipe.num_inference_steps}",
        "its own numbers with other words": _own(
            it, "a ship\nSteps: {steps}, Size: 8x8, Seed: {seed}"
        ),
        "its own numbers in JSON with other words": json.dumps(
            settings | {"seed": it.recipe.seed, "steps": it.recipe.num_inference_steps}
        ),
        "its own words and then others": f"{it.recipe.prompt}\n{_OTHERS}",
    }.items():
        yield f"told by {name}", it.with_chunks(_text("Comment", text))
    for kind in ("xmp", "iptc", "8bim", "generic"):
        block = b"<x>Seed: 9, Steps: 9</x>"
        yield f"told in a raw profile {kind}", it.with_chunks(raw_profile(kind, block))
    both = "Seed: 9, Steps: 9".encode("utf-16-le")
    yield "told in a raw profile of two bytes a letter", it.with_chunks(raw_profile("xmp", both))
    comment = user_comment(_own(it, "a ship\nSteps: {steps}, Size: 8x8, Seed: {seed}").encode())
    yield "its own numbers, other words, in a user comment", it.with_chunks(chunk(b"eXIf", comment))
    packet = f'dc:description="{html.escape(json.dumps(settings))}"'
    yield "told in XMP as JSON in HTML", it.with_chunks(xmp(packet))


def _turned(it: Original) -> Iterator[Named]:
    for name, element in {
        "with a data type": '<tiff:Orientation rdf:datatype="x">6</tiff:Orientation>',
        "with a language": '<tiff:Orientation xml:lang="en">8</tiff:Orientation>',
        "with a value": '<tiff:Orientation rdf:value="6"/>',
        "with a value inside": "<tiff:Orientation><rdf:value>6</rdf:value></tiff:Orientation>",
        "without a prefix": '<Orientation xmlns="http://ns.adobe.com/tiff/1.0/">6</Orientation>',
        "over lines": "<tiff:Orientation\n>\n 6 \n</tiff:Orientation>",
        "behind a comment": "<tiff:Orientation><!-- 1 -->6</tiff:Orientation>",
    }.items():
        yield f"turned by XMP's element {name}", it.with_chunks(_element(element))


def shown_as_it_is(it: Original) -> Iterator[Named]:
    """Captions, and how honest programs spell that nothing is special."""
    yield from with_own_words(it)
    for name, comment in {
        "a caption": user_comment(b"Screenshot"),
        "a caption of two bytes a letter": user_comment(
            "狐".encode("utf-16-be"), code=b"UNICODE\0"
        ),
        "a caption with numbers": user_comment(b"my best seed, 20 steps from the door"),
        "its own numbers": user_comment(_own(it, "seed: {seed}, steps: {steps}").encode()),
    }.items():
        yield f"a user comment: {name}", it.with_chunks(chunk(b"eXIf", comment))
    for key, text in (
        ("Title", "Seed: a story in three steps"),
        ("Description", _own(it, "My fox (seed: {seed}, steps: {steps})")),
        ("Comment", "seed 9 was nicer; so was one with 9 steps"),
        ("Caption", "Prompted by rain: a fox"),
    ):
        yield f"{key}: {text}", it.with_chunks(_text(key, text))
    image = Image.fromarray(it.pixels)
    yield "the profile of sRGB of 1998", it.from_image(image, icc_profile=srgb())
    yield "a profile of sRGB's formula", it.from_image(image, icc_profile=srgb_by_formula())
    yield "cICP of sRGB", it.with_chunks(chunk(b"cICP", b"\x01\x0d\x00\x01"))
    cut = struct.pack(">8I", 31269, 32899, 63999, 33001, 30000, 60000, 15000, 5999)
    yield "primaries of sRGB, cut off", it.with_chunks(chunk(b"cHRM", cut))
    for name, element in {
        "an element": "<tiff:Orientation>1</tiff:Orientation>",
        "an element over lines": "<tiff:Orientation>\n 1\n</tiff:Orientation >",
    }.items():
        yield f"turned nowhere by XMP's {name}", it.with_chunks(_element(element))
    yield "XMP about a fox's orientation", it.with_chunks(xmp('dc:title="Orientation of a fox"'))
    yield "captions in a raw profile", it.with_chunks(raw_profile("iptc", b"\x1c\x02x\0\5a fox"))


def with_own_words(it: Original) -> Iterator[Named]:
    """The picture's own words and settings, where other programs copy them."""
    words, ours = it.recipe.prompt, png.read_texts(it.data)["parameters"]
    yield "as it was painted", it.data
    yield "its prompt as a description", it.with_chunks(_text("Description", words))
    quoted = html.escape(words).replace("\n", "&#10;")
    yield "its prompt in XMP", it.with_chunks(xmp(f'dc:description="{quoted}"'))
    yield "its settings as a text", it.with_chunks(_text("UserComment", ours))
    told = chunk(b"eXIf", user_comment(ours.encode()))
    yield "its settings as a user comment", it.with_chunks(told)


def _own(it: Original, text: str) -> str:
    return text.format(seed=it.recipe.seed, steps=it.recipe.num_inference_steps)


def _text(key: str, value: str) -> Chunk:
    return png_chunks.utf8_text(key, value)


def _element(element: str) -> Chunk:
    return xmp(f">\n{element}</rdf:Description><rdf:Description ")


def _adobe_rgb(order: str) -> bytes:
    mark = b"II*\0" if order == "<" else b"MM\0*"
    main = struct.pack(f"{order}IHHHIII", 8, 1, 0x8769, 4, 1, 26, 0)
    return mark + main + struct.pack(f"{order}HHHIHHI", 1, 0xA001, 3, 1, 2, 0, 0)
