"""Settings in other spellings, and what XMP and EXIF have viewers do, in homes not tried before."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

from seedgrid.formats import png_chunks
from seedgrid.formats.png_chunks import Chunk
from tests.forgeries.files import Named, chunk, exif, xmp
from tests.forgeries.originals import Original

_PANORAMA = 'xmlns:GPano="http://ns.google.com/photos/1.0/panorama/" GPano:ProjectionType="x"'
_GAINS = 'xmlns:HDRGainMap="http://ns.apple.com/HDRGainMap/1.0/" HDRGainMap:Headroom="2"'
_SETTINGS = {
    "many spaces": "Seed:          9, Steps      :     9",
    "lines": "Seed:\n\n\n\n\n 9\nSteps:\n\n\n\n\n 9",
    "spaces that do not break": "Seed: 9, Steps: 9".replace(" ", "\u00a0" * 9),
    "elements": "<a><Seed>9</Seed><Steps>9</Steps></a>",
    "lists": '{"seed": [9], "steps": [9]}',
    "lines of YAML": "seed:\n  - 9\nsteps:\n  - 9",
    "brackets": "seed=(9), steps=(9)",
    "signs": "Seed: +9, Steps: -9",
    "arrows": "seed => 9, steps => 9",
    "JSON in JSON": json.dumps(json.dumps({"seed": 9, "steps": 9})),
    "a command": 'paint --seed 9 --steps 9 --prompt "a ship"',
    "letters that nobody sees": "S\u200beed\u00ad: 9, Steps\u200e: \u20609",
}


def shown_or_told_otherwise(it: Original) -> Iterator[Named]:
    """What makes somebody see other colours, or another program read other settings."""
    for name, text in _SETTINGS.items():
        yield f"told in {name}", it.with_chunks(png_chunks.utf8_text("Comment", text))
    yield "told in a name", it.with_chunks(png_chunks.utf8_text("Seed: 9, Steps: 9", "yes"))
    elements = "><sd:Seed>9</sd:Seed><sd:Steps>9</sd:Steps></rdf:Description><rdf:Description "
    yield "told in elements of XMP", it.with_chunks(xmp(f'xmlns:sd="x" {elements}'))
    for order in "<>":
        yield f"Adobe RGB by interoperability {order}", it.with_chunks(_interoperability(order))
    yield "Adobe RGB by XMP", it.with_chunks(xmp('exif:ColorSpace="2"'))
    element = "><exif:ColorSpace>2</exif:ColorSpace></rdf:Description><rdf:Description "
    yield "Adobe RGB by XMP's element", it.with_chunks(xmp(element))
    yield "a panorama", it.with_chunks(xmp(_PANORAMA))
    yield "Apple's map of gains", it.with_chunks(xmp(_GAINS))
    wide = b"MM\0*" + struct.pack(">IHHHIII", 8, 1, 0x0112, 4, 1, 6, 0)
    yield "turned by a wide number, largest first", it.with_chunks(chunk(b"eXIf", wide))
    many = b"MM\0*" + struct.pack(">IHHHIII", 8, 1, 0x0112, 3, 9, 0x10000, 0)
    yield "turned by many numbers", it.with_chunks(chunk(b"eXIf", many))


def shown_as_it_is(it: Original) -> Iterator[Named]:
    """What honest programs write."""
    yield "no orientation, told by a nought", it.with_chunks(chunk(b"eXIf", exif(0)))
    yield "sRGB by XMP", it.with_chunks(xmp('exif:ColorSpace="1" photoshop:ICCProfile="sRGB"'))
    for name, text in {
        "seeds of flowers": "seeds: sunflower, poppy; steps: sow, water",
        "its own settings as a command": "--seed {seed} --steps {steps}",
        "its own settings in lists": "seed: [{seed}], steps: [{steps}]",
    }.items():
        own = text.format(seed=it.recipe.seed, steps=it.recipe.num_inference_steps)
        yield name, it.with_chunks(png_chunks.utf8_text("Comment", own))


def no_picture(it: Original) -> Iterator[Named]:
    """Records that could not be written again."""
    text = json.dumps(it.record)
    for number in ("1e999", "-1e999"):
        other = text.replace('"passport": {', f'"passport": {{"x": {number}, ', 1)
        yield f"a passport with {number}", it.text_is(other)


def _interoperability(order: str) -> Chunk:
    """Write EXIF that says Adobe RGB as cameras do."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    main = struct.pack(f"{order}IHHHIII", 8, 1, 0x8769, 4, 1, 26, 0)
    inner = struct.pack(f"{order}HHHIHH", 2, 0xA001, 3, 1, 0xFFFF, 0)
    inner += struct.pack(f"{order}HHIII", 0xA005, 4, 1, 56, 0)
    last = struct.pack(f"{order}HHHI", 1, 1, 2, 4) + b"R03\0" + bytes(4)
    return chunk(b"eXIf", mark + main + inner + last)
