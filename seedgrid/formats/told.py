"""What a PNG file tells other programs: the words and settings of its recipe, or somebody else's.

`parameters` is ours to the letter. Anything else may say what it likes, as long as it names no
settings: a seed and a number of steps that are neither the picture's nor part of its own words.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from seedgrid.core.errors import PictureError
from seedgrid.core.recipe import Recipe
from seedgrid.formats import png_chunks
from seedgrid.formats.embedded import read_blocks
from seedgrid.formats.exif import texts_of_block
from seedgrid.formats.importers import a1111
from seedgrid.formats.importers.foreign import names_settings
from seedgrid.formats.parameters import PARAMETERS_KEY, parameters_text, without_version
from seedgrid.formats.png import CHUNK_KEY
from seedgrid.formats.png_chunks import Chunk

_NAMED: Final = r"[\\\"']{0,4}\s{0,99}[:=>|\u2236\u2192]"
"""Between a name and what it is: `seed: 9`, `"seed": [9]`, `<Seed>9`, `--seed 9`."""
_SEED: Final = re.compile(rf"(?:seed{_NAMED}|--seed\s)\W{{0,99}}?(\d{{1,20}})", re.IGNORECASE)
_STEPS: Final = re.compile(rf"(?:steps{_NAMED}|--steps\s)\W{{0,99}}?(\d{{1,20}})", re.IGNORECASE)
_WORDS: Final = re.compile(rf"prompt{_NAMED}", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"\\(?:u00|x|u\{)([2-7][0-9a-fA-F])\}?")
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_AROUND: Final = re.compile(
    r"</?rdf:[^<>]{0,99}>|\sxml:lang\s{0,9}=\s{0,9}[\"'][^\"'<>]{0,35}[\"']", re.IGNORECASE
)
_VALUE: Final = re.compile(
    r"[\s,]{0,9}[\"']?(?:\brdf:|\b)val(?:ue)?[\"']?\s{0,9}[:=]", re.IGNORECASE
)
_SPELLINGS: Final[tuple[Callable[[str], str], ...]] = (
    str,
    html.unescape,
    lambda text: _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text),
    lambda text: unicodedata.normalize("NFKC", text),
    lambda text: _INVISIBLE.sub("", text),
    lambda text: html.unescape(unquote(text)),
    lambda text: _VALUE.sub(":", _AROUND.sub("", text)),
)
"""As it is, and as HTML, JSON, Unicode and addresses may have letters otherwise;
without what nobody sees, and without what may stand between a name and its value."""

_OWN_KINDS: Final = frozenset({b"IHDR", b"IDAT", b"IEND"})
_OWN_TEXTS: Final = {
    b"tEXt": (f"{PARAMETERS_KEY}\0".encode(),),
    b"iTXt": (f"{PARAMETERS_KEY}\0\0\0\0\0".encode(), f"{CHUNK_KEY}\0\0\0\0\0".encode()),
}
"""How the texts begin that SeedGrid writes; what they say is asked to the letter."""
_KEY_LETTERS: Final = 40


def told_otherwise(data: bytes, recipe: Recipe) -> bool:
    """Tell whether a text for other programs names other words or settings than the recipe."""
    chunks = png_chunks.split(data)
    ours = without_version(parameters_text(recipe))
    told = [png_chunks.all_texts(chunks)]
    if any(key == PARAMETERS_KEY and without_version(text) != ours for key, text in told[0]):
        return True
    try:
        told += [list(texts_of_block(block).items()) for block in read_blocks(chunks).exif]
    except PictureError:
        return True
    # A user comment may be a caption: it is settings only where a reader would find some.
    others = [[pair for pair in texts if without_version(pair[1]) != ours] for texts in told]
    if any(names_settings(dict(pairs)) or names_settings(dict(pairs[::-1])) for pairs in others):
        return True
    own = _own_words(recipe, ours)
    plain = [_without(text, own) for text in _beside(chunks)]
    together = "\n".join(plain)  # The seed may stand in one, and the steps in another.
    return _has_others(together, recipe) or any(_names_others(text, recipe) for text in plain)


def unchecked(data: bytes) -> tuple[str, ...]:
    """Name what a PNG file holds that SeedGrid does not write, each once.

    What is known of it is asked above and by `appearance`; all that it may say, nobody can ask.
    """
    chunks = png_chunks.split(data)
    names = [_name(chunk) for chunk in chunks if not _is_ours(chunk)]
    if len(data) > len(png_chunks.SIGNATURE) + sum(len(chunk.data) + 12 for chunk in chunks):
        names.append("data behind the end")
    return tuple(dict.fromkeys(names))


def _is_ours(chunk: Chunk) -> bool:
    if chunk.kind in _OWN_KINDS:
        return True
    return chunk.data.startswith(_OWN_TEXTS.get(chunk.kind, ()))


def _name(chunk: Chunk) -> str:
    """A chunk's kind, with a text's key, as far as it can be shown."""
    kind = chunk.kind.decode("latin-1")
    if chunk.kind not in png_chunks.TEXT_KINDS:
        return kind
    key = chunk.data.partition(b"\0")[0].decode("latin-1")[:_KEY_LETTERS]
    return f"{kind} {''.join(letter if letter.isprintable() else '?' for letter in key)}"


def _own_words(recipe: Recipe, ours: str) -> tuple[str, ...]:
    """Return what names settings and is the picture's own: a prompt may hold anything."""
    words = (recipe.prompt, recipe.negative_prompt, recipe.typed_prompt)
    return (ours, *(text for text in words if all(_numbers(_plain(text)))))


def _beside(chunks: Sequence[Chunk]) -> Iterator[str]:
    """Give all texts but the record, with their names, and in whatever block they are."""
    blocks = read_blocks(chunks)
    for chunk in chunks:
        if chunk.kind == b"iTXt":  # Its language, and its name in that language.
            head = chunk.data.partition(b"\0")[2][2:].split(b"\0", 2)[:2]
            yield b" ".join(head).decode(errors="replace")
    yield from (f"{key}\n{text}" for key, text in png_chunks.all_texts(chunks) if key != CHUNK_KEY)
    yield from (packet.replace("\0", "") for packet in blocks.packets)
    for block in blocks.exif:
        for coding in ("utf-8", "utf-16-le", "utf-16-be"):
            for start in (0, 1):  # Fields of two bytes a letter may begin anywhere.
                yield block[start:].decode(coding, "replace")


def _without(text: str, own: Sequence[str]) -> str:
    """Spell a text as it is read, and take the own words out, however they are spelled."""
    words = set(own)
    for spelled in _SPELLINGS:
        text = spelled(text)
        words |= {spelled(each) for each in words}
        for each in sorted(words, key=len, reverse=True):
            text = text.replace(each, " ")
    return text


def _plain(text: str) -> str:
    for spelled in _SPELLINGS:
        text = spelled(text)
    return text


def _names_others(text: str, recipe: Recipe) -> bool:
    """Tell whether a text names a seed and a number of steps, as all tools' settings do.

    The picture's own may stand in a caption, unless words stand with them as settings have them.
    """
    seeds, steps = _numbers(text)
    if not seeds or not steps:
        return False
    return _has_others(text, recipe) or _WORDS.search(text) is not None or _is_list(text)


def _has_others(text: str, recipe: Recipe) -> bool:
    seeds, steps = _numbers(text)
    own = {str(recipe.seed)}, {str(recipe.num_inference_steps)}
    return bool(seeds and steps) and (seeds, steps) != own


def _numbers(text: str) -> tuple[set[str], set[str]]:
    """Return the seeds and the numbers of steps that a text names."""
    return set(_SEED.findall(text)), set(_STEPS.findall(text))


def _is_list(text: str) -> bool:
    try:
        return a1111.read({PARAMETERS_KEY: text}) is not None
    except PictureError:
        return True
