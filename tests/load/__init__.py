"""Visitors at random on the real page server with the fake backend: load, soak, mix-ups.

python -m tests.load --visitors 50 --seconds 60
python -m tests.load --visitors 100 --hostile 10 --seconds 900      rude ones among them
python -m tests.load --visitors 20 --seconds 600 --bad-luck         things go wrong meanwhile

What the server holds is sampled every second and must be flat after a warm-up.
"""
