"""Verify: run a picture's recipe again and compare, with the reason for any difference.

    verdicts = verify([read_claim(Path("fox.png"))], backend)
    verdicts[0].verdict    # "identical"

claim.py       a picture's pixels, with the recipe and passport of its file
comparison.py  what differs between two pictures and two passports
judging.py     the verdict on one picture
verifying.py   runs the recipes again
"""

from seedgrid.verify.claim import Claim, claim_of, pixel_steps_of, read_claim
from seedgrid.verify.comparison import (
    Box,
    Comparison,
    Reason,
    compare_pixels,
    difference_picture,
    figures_of,
    passport_differences,
)
from seedgrid.verify.judging import WORDS, Verdict
from seedgrid.verify.verifying import batches, read_claims, verify

__all__ = [
    "WORDS",
    "Box",
    "Claim",
    "Comparison",
    "Reason",
    "Verdict",
    "batches",
    "claim_of",
    "compare_pixels",
    "difference_picture",
    "figures_of",
    "passport_differences",
    "pixel_steps_of",
    "read_claim",
    "read_claims",
    "verify",
]
