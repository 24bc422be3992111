r"""Prompts: suffixes, choices, lists, the LoRAs that a prompt names, and the weights of its words.

Weights are written as in AUTOMATIC1111: `(word)` multiplies by 1.1, `((word))` by 1.21, `[word]`
divides by 1.1, `(word:1.3)` multiplies by 1.3; `\(` is a literal bracket. A bracket that is not
closed ends with the prompt. `diffusion/words.py` applies the weights to embeddings.

    >>> append("a red fox", ", artsy"), append("a red fox", "at night")
    ('a red fox, artsy', 'a red fox at night')
    >>> read_tags("a red fox <lora:foxes:0.8>")
    ('a red fox', (('foxes', 0.8),))
    >>> alternatives("a {red|blue} fox")
    ('a red fox', 'a blue fox')
    >>> open_lists("a __coat__ fox", {"coat": ["red", "blue"]}.__getitem__)
    ('a red fox', 'a blue fox')
    >>> read_weights("a (red:1.3) fox")
    (('a ', 1.0), ('red', 1.3), (' fox', 1.0))

Source: https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#attentionemphasis
"""

import difflib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import Lora
from seedgrid.core.text import write_decimal

# The example of the Diffusers guide on deterministic batch generation
GUIDE_PROMPT: Final = "Labrador in the style of Vermeer"
GUIDE_SUFFIXES: Final = (", highly realistic", ", artsy", ", trending", ", colorful")
FURTHER_SUFFIXES: Final = (  # For models that declare no words
    ", at night",
    ", black and white",
    ", in the fog",
    ", vintage",
    ", close-up",
    ", golden hour",
    ", from above",
    ", in winter",
)

MAX_COMPARISONS: Final = 100_000  # Of word pairs; above this limit all words count as changed


def says_something(suffix: str) -> bool:
    """Tell whether a suffix holds more than punctuation and spaces."""
    return bool(suffix.strip(" ,;.\n\t，；。、\u3000"))


def append(prompt: str, suffix: str) -> str:
    """Append a suffix, after a space unless it starts with punctuation."""
    suffix = suffix.rstrip()
    if not suffix:
        return prompt
    is_glued = suffix[0] in ",.;:!?，。；：！？、"
    return prompt.rstrip() + (suffix if is_glued else " " + suffix.lstrip())


Kind = Literal["same", "added", "removed"]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Words that two prompts share, or that only one of them has."""

    kind: Kind
    text: str


def compare_words(before: str, after: str) -> tuple[Piece, ...]:
    """Compare two prompts: return their pieces in reading order, same, added or removed.

    Joining all pieces except removed ones gives `after`; joining all except added ones, `before`.
    """
    compared = _compare(_tokens(before), _tokens(after))
    return tuple(Piece(kind=kind, text="".join(words)) for kind, words in compared if words)


def _compare(old: list[str], new: list[str]) -> Iterator[tuple[Kind, list[str]]]:
    """Compare word by word; the time grows with the square, or cube, of the number of words."""
    if len(old) * len(new) > MAX_COMPARISONS:
        yield from (("removed", old), ("added", new))
        return
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            yield "same", old[old_from:old_to]
        else:
            yield from (("removed", old[old_from:old_to]), ("added", new[new_from:new_to]))


def _tokens(text: str) -> list[str]:
    """Split into words with the space before them; Chinese and Japanese into single characters."""
    return re.findall(r"\s*(?:[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\s])|\s+$", text)


_CHOICE: Final = re.compile(r"\{([^{}]*+)\}")
_MAX_CHOSEN: Final = 256


def alternatives(text: str, *, field: str = "prompt") -> tuple[str, ...]:
    """Return the texts that `{red|blue} fox` stands for; raise `pictures_count` over 256 texts.

    Braces without a bar, and braces around others, are kept as text.
    """
    parts = _CHOICE.split(text)  # Every second part is the text inside braces
    choices = [
        [part] if index % 2 == 0 else part.split("|") if "|" in part else [f"{{{part}}}"]
        for index, part in enumerate(parts)
    ]
    return _combinations(choices, field)


_LIST: Final = re.compile(r"__((?:[^\W_]|-|_(?!_)){1,64}+)__")


def open_lists(
    text: str, lines_of: Callable[[str], Sequence[str]], *, field: str = "prompt"
) -> tuple[str, ...]:
    """Return the texts with a list's name, as in `a __coat__ fox`, replaced by each of its lines.

    `lines_of` returns the lines of the list with a name (letters, digits, `-` and `_`, at most 64).
    Choices in braces stay as they are. Raise `pictures_count` for over 256 texts, or as `lines_of`.
    """
    parts = _LIST.split(text)  # Every second part is a list's name
    choices = [lines_of(part) if at % 2 else [part] for at, part in enumerate(parts)]
    return _combinations(choices, field)


def names_list(text: str) -> bool:
    """Tell whether a text names a list."""
    return _LIST.search(text) is not None


def _combinations(choices: Sequence[Sequence[str]], field: str) -> tuple[str, ...]:
    """Return every combination of one text of each choice, without repeats."""
    count = math.prod(len(each) for each in choices)
    if count > _MAX_CHOSEN:
        raise InputError("pictures_count", field=field, value=min(count, 10**9), limit=_MAX_CHOSEN)
    return tuple(dict.fromkeys("".join(chosen) for chosen in product(*choices)))


MAX_LORAS: Final = 8
MAX_SCALE: Final = 4.0

_TAG: Final = re.compile(r" {0,4}+<lora:([^:<>\n]{1,200}+)(?::([^:<>\n]{1,20}+))?+>", re.IGNORECASE)


def read_tags(prompt: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Split a prompt into words and LoRAs with scales; raise `lora_scale` or `lora_count`."""
    if "<lora:" not in prompt.lower():
        return prompt, ()
    found = tuple((tag[1].strip(), read_scale(tag[2] or "1")) for tag in _TAG.finditer(prompt))
    if len(found) > MAX_LORAS:
        raise InputError("lora_count", field="prompt", value=len(found), limit=MAX_LORAS)
    return (_TAG.sub("", prompt).strip() if found else prompt), found


def without_tags(prompt: str) -> str:
    """Return a prompt without its LoRA tags and list names."""
    return _LIST.sub(" ", _TAG.sub("", prompt))


def write_tags(prompt: str, loras: Sequence[Lora]) -> str:
    """Write a prompt with its LoRAs, as `read_tags` reads it."""
    tags = (f"<lora:{lora.id}:{write_decimal(lora.scale)}>" for lora in loras)
    return " ".join([prompt, *tags]) if loras else prompt


def read_scale(text: str) -> float:
    """Read a LoRA's scale, -4 to 4; raise `lora_scale`."""
    try:
        scale = float(text.strip().replace(",", "."))
    except ValueError:
        scale = math.nan
    if not -MAX_SCALE <= scale <= MAX_SCALE:
        raise InputError("lora_scale", field="prompt", value=text.strip())
    return scale


def rescaled(loras: Sequence[Lora], text: str) -> tuple[Lora, ...]:
    """Set the scale of all LoRAs (`0.5`) or of one (`fox 0.5`); raise `lora_none`, `lora_scale`."""
    *name, number = text.replace(":", " ").split() or [""]
    scale, lora_id = read_scale(number), " ".join(name)
    if not loras or (lora_id and lora_id not in {lora.id for lora in loras}):
        raise InputError("lora_none", field="vary", value=lora_id or text)
    return tuple(
        lora.model_copy(update={"scale": scale}) if lora_id in ("", lora.id) else lora
        for lora in loras
    )


MAX_WEIGHT: Final = 4.0

_BRACKET_WEIGHT: Final = 1.1
_MAX_DEPTH: Final = 8  # Deeper brackets are read as text
_MAX_NUMBER: Final = 24  # Characters to search; more than `_NUMBER` can match
_NUMBER: Final = re.compile(r":\s{0,4}+([+-]?\d{0,6}+(?:\.\d{0,6}+)?)\s{0,4}+\Z")
_CLOSES: Final = {")": "(", "]": "["}

Pieces = tuple[tuple[str, float], ...]  # Pieces of a prompt and their weights


def read_weights(prompt: str) -> Pieces:
    """Split a prompt into pieces with their weights; raise `weight_range`."""
    pieces: list[tuple[str, float]] = []
    opened: list[tuple[str, int]] = []  # Open brackets, and the number of pieces before each
    words = ""
    positions = iter(range(len(prompt)))
    for at in positions:
        sign = prompt[at]
        if sign == "\\" and prompt[at + 1 : at + 2] in tuple("()[]\\"):
            words += prompt[next(positions)]
        elif sign in "([" and len(opened) < _MAX_DEPTH:
            pieces.append((words, 1.0))
            opened.append((sign, len(pieces)))
            words = ""
        elif sign in ")]" and opened and opened[-1][0] == _CLOSES[sign]:
            _, start = opened.pop()
            words, weight = _split_weight(words, sign)
            pieces.append((words, 1.0))
            pieces[start:] = [(text, own * weight) for text, own in pieces[start:]]
            words = ""
        else:
            words += sign
    pieces.append((words, 1.0))
    while opened:
        sign, start = opened.pop()
        weight = _BRACKET_WEIGHT if sign == "(" else 1 / _BRACKET_WEIGHT
        pieces[start:] = [(text, own * weight) for text, own in pieces[start:]]
    return _merged(pieces)


def plain_words(prompt: str) -> str:
    """Return the words of a prompt without brackets and numbers."""
    return "".join(text for text, _ in read_weights(prompt))


def _split_weight(words: str, sign: str) -> tuple[str, float]:
    """Split the text before a closing bracket into words and the weight that the bracket gives."""
    number = _NUMBER.search(words[-_MAX_NUMBER:]) if sign == ")" else None
    if number is None or not any(each.isdigit() for each in number[1]):
        return words, _BRACKET_WEIGHT if sign == ")" else 1 / _BRACKET_WEIGHT
    return words[: len(words) - len(number[0])], float(number[1])


def _merged(found: list[tuple[str, float]]) -> Pieces:
    """Join neighbours of the same weight, and drop empty pieces; raise `weight_range`."""
    pieces: list[tuple[str, float]] = []
    for text, weight in found:
        if not -MAX_WEIGHT <= weight <= MAX_WEIGHT:
            raise InputError(
                "weight_range", field="prompt", value=f"{weight:g}", limit=f"{MAX_WEIGHT:g}"
            )
        if pieces and pieces[-1][1] == weight:
            pieces[-1] = (pieces[-1][0] + text, weight)
        elif text:
            pieces.append((text, weight))
    return tuple(pieces)
