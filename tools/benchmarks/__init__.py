"""SeedGrid beside plain diffusers: the same pictures, interleaved, in medians.

    python -m tools.benchmarks              # or: seedgrid bench
    python -m tools.benchmarks --rounds 7 --processes --json found.json

What is compared is what a user would write instead: `pipe(prompts, generator=[…])` and
`image.save(…)`. Nothing here is imported by SeedGrid.
"""
