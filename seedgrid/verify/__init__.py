"""Verify: run a picture's recipe again and compare, with the reason for any difference.

    verdicts = verify([read_claim(Path("fox.png"))], backend)
    verdicts[0].verdict    # "identical"

claim.py       what a picture says of itself
comparison.py  two pictures, pixel by pixel
judging.py     the verdict on one picture
reasons.py     what there is to say, and what a difference of the passports explains
verifying.py   the work itself
"""

from seedgrid.verify.claim import Claim, claim_of, pixel_steps_of, read_claim
from seedgrid.verify.comparison import (
    Box,
    Comparison,
    compare_pixels,
    difference_picture,
    figures_of,
)
from seedgrid.verify.judging import WORDS, Verdict
from seedgrid.verify.reasons import Reason, passport_differences
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
