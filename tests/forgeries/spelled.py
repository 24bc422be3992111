"""Settings in other spellings, and what XMP and EXIF have viewers do, in homes not tried before."""

from __future__ import annotations

import json
import struct
import zlib
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
    "more letters that nobody sees": "Se\ufe0fed: 9, S\u034ft\U000e0061eps: 9",
    "values by that name": '{"seed": {"value": 9}, "steps": {"value": 9}}',
    "names by that name": '[{"name": "seed", "value": 9}, {"name": "steps", "value": 9}]',
    "names in YAML": "- name: seed\n  value: 9\n- name: steps\n  value: 9",
    "an address": "https://x/?q=seed%3D9%26steps%3D9",
    "HTML in HTML": "Seed&amp;#58; 9, Steps&amp;#58; 9",
    "C's escapes": '{"\\x73eed": 9, "st\\u{65}ps": 9}',
    "signs of proportion": "Seed\u2236 9, Steps\u2236 9",
}
_ELEMENTS = {
    "lists": "<s:seed><rdf:Seq><rdf:li>9</rdf:li></rdf:Seq></s:seed>"
    "<s:steps><rdf:Seq><rdf:li>9</rdf:li></rdf:Seq></s:steps>",
    "text that is not parsed": "<s:seed><![CDATA[9]]></s:seed><s:steps><![CDATA[9]]></s:steps>",
    "values": "<s:seed rdf:value='9'/><s:steps rdf:value='9'/>",
    "a language": "<s:seed xml:lang='x'>9</s:seed><s:steps xml:lang='x'>9</s:steps>",
    "a space of colours in a value": '<exif:ColorSpace rdf:value="2"/>',
    "a space of colours in a language": '<exif:ColorSpace xml:lang="x">2</exif:ColorSpace>',
    "a space of colours inside": "<exif:ColorSpace><rdf:value>2</rdf:value></exif:ColorSpace>",
    "a space of colours not parsed": "<exif:ColorSpace><![CDATA[2]]></exif:ColorSpace>",
    "a space of colours without prefix": "<ColorSpace>2</ColorSpace>",
}
_ATTRIBUTES = {
    "a space of colours by its letter's number": 'exif:ColorSpace="&#50;"',
    "a space of colours with a nought": 'exif:ColorSpace="02"',
    "edits by a letter's number": 'xmlns:c="http://ns.adobe.com/camera-raw-&#115;ettings/1.0/"',
    "gains by a letter's number": 'xmlns:c="http://ns.adobe.com/hdr-g&#x61;in-map/1.0/"',
    "a panorama by a letter's number": 'xmlns:c="http://ns.google.com/ph&#111;tos/1.0/panorama/"',
    "darktable's history": 'xmlns:darktable="http://darktable.sf.net/" darktable:history_end="3"',
}


def shown_or_told_otherwise(it: Original) -> Iterator[Named]:
    """What makes somebody see other colours, or another program read other settings."""
    for name, text in _SETTINGS.items():
        yield f"told in {name}", it.with_chunks(png_chunks.utf8_text("Comment", text))
    for name, element in _ELEMENTS.items():
        packet = xmp(f">{element}</rdf:Description><rdf:Description ")
        yield f"XMP's element: {name}", it.with_chunks(packet)
    for name, attribute in _ATTRIBUTES.items():
        yield f"XMP's attribute: {name}", it.with_chunks(xmp(attribute))
    entity = xmp('exif:ColorSpace="&o;"').data.replace(b"<x:", b'<!DOCTYPE x [<!ENTITY o "2">]><x:')
    yield "a space of colours by an entity", it.with_chunks(chunk(b"iTXt", entity))
    for head in ("en\0Seed: 9, Steps: 9", "Seed: 9, Steps: 9\0"):
        text = chunk(b"iTXt", f"Comment\0\0\0{head}\0a fox".encode())
        yield f"told in a text's head {head[:2]}", it.with_chunks(text)
    apart = (png_chunks.utf8_text("A", "Seed: 9"), png_chunks.utf8_text("B", "Steps: 9"))
    yield "told by two texts", it.with_chunks(*apart)
    squeezed = b"\0" + struct.pack(">I", 26) + zlib.compress(exif(6))
    yield "turned by packed EXIF", it.with_chunks(chunk(b"zxIf", squeezed))
    seen = b"".join(b"\0" + bytes([value]) for value in it.pixels[0, 0])
    late = it.with_chunks(chunk(b"tRNS", seen), at_the_end=True)
    yield "a colour made transparent behind the pixels", late
    for order in "<>":
        for name, tag, kind, value in (
            ("a wide space of colours", 0xA001, 4, 2),
            ("a gamma", 0xA500, 5, 44),
            ("a profile", 0x8773, 7, 26),
        ):
            inner = _inner(order, tag, kind, value)
            yield f"EXIF: {name} {order}", it.with_chunks(chunk(b"eXIf", inner))
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
    yield "sRGB by its letter's number", it.with_chunks(xmp('exif:ColorSpace="&#49;"'))
    yield "no space of colours by XMP", it.with_chunks(xmp('exif:ColorSpace="65535"'))
    yield "sRGB by a wide number", it.with_chunks(chunk(b"eXIf", _inner(">", 0xA001, 4, 1)))
    upright = "><tiff:Orientation><![CDATA[1]]></tiff:Orientation></rdf:Description"
    yield "upright, not parsed", it.with_chunks(xmp(f"{upright}><rdf:Description "))
    head = "Comment\0\0\0de\0Bemerkung\0schön".encode()
    yield "a text with its name in German", it.with_chunks(chunk(b"iTXt", head))
    yield "sRGB by XMP", it.with_chunks(xmp('exif:ColorSpace="1" photoshop:ICCProfile="sRGB"'))
    for name, text in {
        "values of seeds": "The seed of value: 9 lives; next steps: see value 3",
        "its own settings by that name": '{{"seed": {{"value": {seed}}},'
        ' "steps": {{"value": {steps}}}}}',
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


def _inner(order: str, tag: int, kind: int, value: int) -> bytes:
    """Write EXIF with one number in its inner block."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    main = struct.pack(f"{order}IHHHIII", 8, 1, 0x8769, 4, 1, 26, 0)
    return mark + main + struct.pack(f"{order}HHHIII", 1, tag, kind, 1, value, 0)


def _interoperability(order: str) -> Chunk:
    """Write EXIF that says Adobe RGB as cameras do."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    main = struct.pack(f"{order}IHHHIII", 8, 1, 0x8769, 4, 1, 26, 0)
    inner = struct.pack(f"{order}HHHIHH", 2, 0xA001, 3, 1, 0xFFFF, 0)
    inner += struct.pack(f"{order}HHIII", 0xA005, 4, 1, 56, 0)
    last = struct.pack(f"{order}HHHI", 1, 1, 2, 4) + b"R03\0" + bytes(4)
    return chunk(b"eXIf", mark + main + inner + last)
