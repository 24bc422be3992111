"""Visitors at random on the real page server with the fake backend: load, soak, mix-ups.

python -m tests.load --visitors 50 --seconds 60
"""
