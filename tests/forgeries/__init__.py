"""Forged and edited files in hundreds, each with the verdicts that are right.

    python -m tests.forgeries [--pictures 4] [--only WORD] [--keep FOLDER] [--sample N --seed S]

originals.py  an honest picture, and how a file is put together by hand
pixels.py     what can be done to pixels
files.py      what changes nothing around the pixels, and what is no PNG file any more
looks.py      what makes somebody see or read something else
hidden.py     what hides where a reader rarely looks
besides.py    what other programs look for beside the pixels
places.py     captions and settings, wherever they stand and however they are spelled
profiles.py   profiles of colours, put together by hand
records.py    what can be written into the recipe, the passport and the record
kinds.py      pictures with a LoRA, from a start, enlarged, portable, refined, and their forgeries
cases.py      all of it, and which verdicts are right
"""
