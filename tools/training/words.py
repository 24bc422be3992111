"""What a picture is called: a wording, and captions that say it in many ways.

Knows the words, not how anything is drawn. Words combine freely; a few nonsense words are mixed in
so that unknown ones are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SUBJECT_WORDS: dict[str, tuple[str, ...]] = {
    "labrador": (
        "Labrador",
        "Labrador",
        "dog",
        "Labrador dog",
        "puppy",
        "dogs",
        "puppies",
        "labradors",
    ),
    "cat": ("cat", "cat", "kitten", "cats", "kittens", "kitty"),
    "house": ("house", "house", "cottage", "home", "houses", "cottages", "cabin"),
    "sailboat": (
        "sailboat",
        "sailboat",
        "boat",
        "sailing ship",
        "sailboats",
        "boats",
        "ships",
        "yacht",
    ),
    "lighthouse": ("lighthouse", "lighthouse", "beacon", "lighthouses"),
    "tree": ("tree", "tree", "apple tree", "trees"),
    "mountain": ("mountain", "mountain", "snowy mountain", "mountains"),
    "sunflower": ("sunflower", "sunflower", "flower", "sunflowers", "flowers"),
    "fish": ("fish", "fish", "striped fish", "goldfish"),
    "moon": ("moon", "moon", "crescent moon", "moons"),
    "fox": ("fox", "fox", "foxes"),
    "owl": ("owl", "owl", "owls"),
    "rabbit": ("rabbit", "rabbit", "bunny", "hare", "rabbits", "bunnies", "hares"),
    "horse": ("horse", "horse", "pony", "horses", "ponies", "stallion"),
    "bird": ("bird", "bird", "songbird", "sparrow", "birds", "sparrows"),
    "butterfly": ("butterfly", "butterfly", "butterflies"),
    "dragon": ("dragon", "dragon", "dragons"),
    "rose": ("rose", "rose", "roses"),
    "mushroom": ("mushroom", "mushroom", "toadstool", "mushrooms", "toadstools"),
    "apple": ("apple", "apple", "apples"),
    "teapot": ("teapot", "teapot", "kettle", "teapots", "kettles"),
    "car": ("car", "car", "automobile", "cars"),
    "bicycle": ("bicycle", "bicycle", "bike", "bicycles", "bikes"),
    "train": ("train", "train", "locomotive", "steam train", "trains", "locomotives"),
    "rocket": ("rocket", "rocket", "spaceship", "rockets", "spaceships"),
    "robot": ("robot", "robot", "android", "robots", "androids"),
    "castle": ("castle", "castle", "fortress", "castles", "fortresses", "palace"),
    "bridge": ("bridge", "bridge", "stone bridge", "bridges"),
    "windmill": ("windmill", "windmill", "mill", "windmills", "mills"),
    "portrait": (
        "portrait",
        "portrait",
        "woman",
        "portrait of a woman",
        "face",
        "portraits",
        "women",
        "lady",
        "girl",
    ),
}
FIRST_SUBJECTS = tuple(SUBJECT_WORDS)[:10]
"""The ten that the model learned first; more were added to it later."""
LATER_SUBJECTS = tuple(SUBJECT_WORDS)[10:]
STYLE_WORDS: dict[str, tuple[str, ...]] = {
    "plain": ("", "", "an illustration"),
    "vermeer": (
        "in the style of Vermeer",
        "in the style of Vermeer",
        "by Vermeer",
        "Vermeer painting",
    ),
    "van gogh": (
        "in the style of Van Gogh",
        "in the style of Van Gogh",
        "by Van Gogh",
        "by Vincent van Gogh",
    ),
    "hokusai": (
        "in the style of Hokusai",
        "in the style of Hokusai",
        "by Hokusai",
        "Japanese woodblock print",
    ),
    "mondrian": (
        "in the style of Mondrian",
        "in the style of Mondrian",
        "by Mondrian",
        "by Piet Mondrian",
    ),
    "watercolor": ("watercolor", "in watercolor", "as a watercolor", "watercolour painting"),
    "pixel art": ("pixel art", "as pixel art", "in the style of pixel art", "8-bit sprite"),
    "blueprint": (
        "blueprint",
        "as a blueprint",
        "in the style of a blueprint",
        "technical drawing",
    ),
    "stained glass": (
        "stained glass",
        "as stained glass",
        "in the style of stained glass",
        "stained glass window",
    ),
}
MODIFIER_WORDS: dict[str, tuple[str, ...]] = {
    "none": ("",),
    "highly realistic": ("highly realistic", "highly realistic", "realistic", "photorealistic"),
    "artsy": ("artsy", "artsy", "arty", "artistic"),
    "trending": ("trending", "trending", "trending on artstation"),
    "colorful": ("colorful", "colorful", "colourful", "rainbow colors"),
    "black and white": ("black and white", "black and white", "monochrome", "grayscale"),
    "at night": ("at night", "at night", "by night", "under the stars"),
    "neon": ("neon", "neon", "neon lights", "glowing neon"),
    "vintage": ("vintage", "vintage", "sepia", "old photograph"),
}
COLORS: dict[str, tuple[float, float, float]] = {
    "red": (0.88, 0.13, 0.12),
    "orange": (1.0, 0.50, 0.08),
    "yellow": (1.0, 0.86, 0.15),
    "green": (0.18, 0.66, 0.24),
    "blue": (0.14, 0.36, 0.86),
    "purple": (0.52, 0.20, 0.74),
    "pink": (1.0, 0.50, 0.70),
    "white": (0.97, 0.97, 0.97),
    "black": (0.13, 0.13, 0.15),
}
TIME_WORDS = {
    "sunset": ("at sunset", "at dusk", "sunset"),
    "dawn": ("at dawn", "at sunrise", "in the morning"),
}
WEATHER_WORDS = {
    "rain": ("in the rain", "rainy", "on a rainy day"),
    "snow": ("in the snow", "snowy", "in winter"),
    "fog": ("in the fog", "foggy", "in the mist"),
}
SIDE_WORDS = {
    "left": ("on the left", "to the left", "left"),
    "right": ("on the right", "to the right", "right"),
}
SIZE_WORDS = {"large": ("large", "big", "huge"), "small": ("small", "little", "tiny")}
NONSENSE = (
    "blorp",
    "quality",
    "masterpiece",
    "zanthic",
    "4k",
    "beautiful",
    "lovely",
    "detailed",
    "xyzzy",
    "best",
    "fantastic",
    "imaginary",
    "dramatic",
    "cinematic",
    "cute",
    "of",
    "with",
    "and",
    "please",
)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """What is said about a picture; None is what is left to the seed."""

    subject: str
    style: str = "plain"
    modifier: str = "none"
    color: str | None = None
    time: str | None = None
    weather: str | None = None
    side: str | None = None
    size: str | None = None


def draw_wording(rng: np.random.Generator) -> Wording:
    """A random wording: every subject, style and modifier alike, attributes now and then."""

    def maybe(chance: float, words: dict) -> str | None:
        return str(rng.choice(list(words))) if rng.random() < chance else None

    modifier = "none" if rng.random() < 0.12 else str(rng.choice(list(MODIFIER_WORDS)))
    return Wording(
        subject=str(rng.choice(list(SUBJECT_WORDS))),
        style=str(rng.choice(list(STYLE_WORDS))),
        modifier=modifier,
        color=maybe(0.2, COLORS),
        time=maybe(0.08, TIME_WORDS),
        weather=maybe(0.12, WEATHER_WORDS),
        side=maybe(0.14, SIDE_WORDS),
        size=maybe(0.14, SIZE_WORDS),
    )


def plain_caption(wording: Wording) -> str:
    """The typical form: "Labrador in the style of Vermeer, highly realistic"."""
    named = " ".join(
        w for w in (wording.size, wording.color, SUBJECT_WORDS[wording.subject][0]) if w
    )
    styled = " ".join(w for w in (named, STYLE_WORDS[wording.style][0]) if w)
    extras = [MODIFIER_WORDS[wording.modifier][0]]
    for words, key in (
        (TIME_WORDS, wording.time),
        (WEATHER_WORDS, wording.weather),
        (SIDE_WORDS, wording.side),
    ):
        extras.append(words[key][0] if key else "")
    return ", ".join([styled, *(extra for extra in extras if extra)])


def caption(wording: Wording, rng: np.random.Generator) -> str:
    """One way of many to say a wording: synonyms, order, articles, filler.

    Args:
        wording: what to say.
        rng: where the choices come from.
    """

    def pick(words: tuple[str, ...]) -> str:
        return str(words[int(rng.integers(len(words)))])

    size = pick(SIZE_WORDS[wording.size]) if wording.size else ""
    noun = " ".join(
        w for w in (size, wording.color or "", pick(SUBJECT_WORDS[wording.subject])) if w
    )
    if rng.random() < 0.35:
        noun = f"{pick(('a', 'a', 'the', 'one'))} {noun}"
    style, modifier = pick(STYLE_WORDS[wording.style]), pick(MODIFIER_WORDS[wording.modifier])
    extras = [
        pick(words[key])
        for words, key in (
            (TIME_WORDS, wording.time),
            (WEATHER_WORDS, wording.weather),
            (SIDE_WORDS, wording.side),
        )
        if key
    ]
    if rng.random() < 0.10:
        extras.append(pick(NONSENSE))
    text = _arrange(noun, style, modifier, extras, rng)
    chance = rng.random()
    return text.lower() if chance < 0.15 else text.rstrip(".") + "." if chance > 0.95 else text


def _arrange(
    noun: str, style: str, modifier: str, extras: list[str], rng: np.random.Generator
) -> str:
    """Put the pieces into one of the usual orders."""
    order = rng.random()
    extras = [extras[i] for i in rng.permutation(len(extras))]
    styled = (
        f"{noun} {style}".strip()
        if rng.random() < 0.75
        else ", ".join(w for w in (noun, style) if w)
    )
    if order < 0.60:  # the guide's form: the modifier is a suffix after a comma
        pieces = [styled, *extras, modifier] if rng.random() < 0.5 else [styled, modifier, *extras]
    elif order < 0.75:
        pieces = [modifier, styled, *extras]
    elif order < 0.90:
        pieces = [f"{modifier} {styled}".strip(), *extras]
    else:
        pieces = [style, noun, *extras, modifier]
    separator = ", " if rng.random() < 0.85 else " "
    return separator.join(piece for piece in pieces if piece)
