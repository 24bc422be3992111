"""How the bundled model was made: draw captioned pictures, train on them, measure, export.

Nothing here is imported by `seedgrid`; `python -m tools.training --help` is the way in.
"""
