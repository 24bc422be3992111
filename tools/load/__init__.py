"""Visitors at random on the real page server with the fake backend: load, soak, mix-ups.

python -m tools.load --visitors 50 --seconds 60
python -m tools.load --visitors 100 --hostile 10 --seconds 900      rude ones among them

What the server holds is sampled every second and must be flat after a warm-up.
"""
