"""What sheets and trees say beside prompts: seeds, noise, what is missing; in any of our languages.

sheet_word("seed", "zh", seed=7)
"""

from seedgrid.core.recipe import Recipe, describe_mix
from seedgrid.locales import english, locales


def sheet_word(name: str, language: str, **data: int | str) -> str:
    """Return a sentence of the sheets, filled in.

    Args:
        name: Of the word, without `sheet_`.
        language: One without such words, or none of ours, is answered in English.
        data: What stands in its braces.
    """
    key = f"sheet_{name}"
    later = locales()[language].later if language in locales() else {}
    return (later.get(key) or english().later[key]).format(**data)


def caption_of(recipe: Recipe, change: str, language: str) -> str:
    """Say a picture's seed and what was changed in it; words and settings as they were written."""
    if change and change == describe_mix(recipe):
        shares = [(f"{share.weight:.0%}"[:-1], share.seed) for share in recipe.noise_mix]
        change = " + ".join(sheet_word("mix", language, percent=p, seed=seed) for p, seed in shares)
    said = sheet_word("seed", language, seed=recipe.seed)
    return f"{said} · {change.strip(' ,')}" if change else said
