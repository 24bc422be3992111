"""The subjects: how each is drawn, its colours, and where it belongs.

The drawings are big, bold and unlike each other; they know nothing about styles, colours (only
roles) or places.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.training.animals import cat, fish, fox, horse, labrador, rabbit
from tools.training.buildings import bridge, castle, house, lighthouse, windmill
from tools.training.ink import Part, Rgb
from tools.training.plants import apple, mushroom, rose, sunflower, tree
from tools.training.things import moon, mountain, portrait, robot, teapot
from tools.training.vehicles import bicycle, car, rocket, sailboat, train
from tools.training.winged import bird, butterfly, dragon, owl

Draw = Callable[[float], list[Part]]

SUBJECTS: dict[str, Draw] = {
    "labrador": labrador,
    "cat": cat,
    "house": house,
    "sailboat": sailboat,
    "lighthouse": lighthouse,
    "tree": tree,
    "mountain": mountain,
    "sunflower": sunflower,
    "fish": fish,
    "moon": moon,
    "fox": fox,
    "owl": owl,
    "rabbit": rabbit,
    "horse": horse,
    "bird": bird,
    "butterfly": butterfly,
    "dragon": dragon,
    "rose": rose,
    "mushroom": mushroom,
    "apple": apple,
    "teapot": teapot,
    "car": car,
    "bicycle": bicycle,
    "train": train,
    "rocket": rocket,
    "robot": robot,
    "castle": castle,
    "bridge": bridge,
    "windmill": windmill,
    "portrait": portrait,
}

NATURAL: dict[str, tuple[Rgb, ...]] = {
    "labrador": ((0.95, 0.80, 0.50), (0.85, 0.60, 0.30), (0.50, 0.30, 0.17)),
    "cat": ((0.95, 0.58, 0.20), (0.80, 0.62, 0.45), (0.52, 0.52, 0.58)),
    "house": ((0.95, 0.86, 0.62), (0.90, 0.65, 0.52), (0.70, 0.80, 0.88)),
    "sailboat": ((0.98, 0.96, 0.90), (0.98, 0.86, 0.55), (0.95, 0.72, 0.60)),
    "lighthouse": ((0.85, 0.16, 0.14), (0.80, 0.35, 0.20), (0.15, 0.25, 0.50)),
    "tree": ((0.20, 0.55, 0.20), (0.50, 0.62, 0.18), (0.88, 0.50, 0.14)),
    "mountain": ((0.45, 0.50, 0.62), (0.50, 0.45, 0.55), (0.56, 0.47, 0.42)),
    "sunflower": ((1.0, 0.82, 0.10), (1.0, 0.68, 0.10), (0.95, 0.50, 0.15)),
    "fish": ((1.0, 0.55, 0.12), (0.95, 0.75, 0.15), (0.25, 0.60, 0.75)),
    "moon": ((1.0, 0.95, 0.70), (0.98, 0.88, 0.58), (0.90, 0.92, 0.96)),
    "fox": ((0.96, 0.52, 0.14), (0.90, 0.42, 0.14), (0.78, 0.34, 0.16)),
    "owl": ((0.66, 0.46, 0.28), (0.55, 0.38, 0.26), (0.58, 0.52, 0.48)),
    "rabbit": ((0.72, 0.60, 0.48), (0.62, 0.60, 0.60), (0.88, 0.84, 0.78)),
    "horse": ((0.66, 0.38, 0.18), (0.78, 0.52, 0.28), (0.60, 0.56, 0.54)),
    "bird": ((0.25, 0.52, 0.85), (0.30, 0.62, 0.72), (0.85, 0.42, 0.25)),
    "butterfly": ((1.0, 0.55, 0.10), (0.98, 0.80, 0.20), (0.30, 0.55, 0.95)),
    "dragon": ((0.25, 0.62, 0.28), (0.15, 0.55, 0.50), (0.55, 0.62, 0.22)),
    "rose": ((0.88, 0.10, 0.16), (0.92, 0.22, 0.40), (0.98, 0.58, 0.62)),
    "mushroom": ((0.88, 0.14, 0.12), (0.86, 0.36, 0.14), (0.64, 0.38, 0.22)),
    "apple": ((0.86, 0.12, 0.14), (0.74, 0.10, 0.16), (0.92, 0.30, 0.20)),
    "teapot": ((0.20, 0.42, 0.76), (0.18, 0.56, 0.56), (0.86, 0.62, 0.36)),
    "car": ((0.86, 0.16, 0.14), (0.16, 0.46, 0.78), (0.96, 0.78, 0.20)),
    "bicycle": ((0.14, 0.48, 0.76), (0.16, 0.60, 0.48), (0.88, 0.32, 0.18)),
    "train": ((0.14, 0.46, 0.30), (0.16, 0.38, 0.62), (0.30, 0.32, 0.38)),
    "rocket": ((0.94, 0.94, 0.96), (0.78, 0.84, 0.92), (0.96, 0.80, 0.40)),
    "robot": ((0.62, 0.74, 0.84), (0.44, 0.66, 0.72), (0.90, 0.66, 0.30)),
    "castle": ((0.74, 0.72, 0.70), (0.82, 0.74, 0.60), (0.62, 0.64, 0.72)),
    "bridge": ((0.72, 0.66, 0.58), (0.78, 0.56, 0.44), (0.62, 0.64, 0.68)),
    "windmill": ((0.96, 0.92, 0.82), (0.84, 0.68, 0.52), (0.66, 0.42, 0.32)),
    "portrait": ((0.14, 0.34, 0.60), (0.16, 0.46, 0.38), (0.62, 0.16, 0.24)),
}
"""The main colour's range where the words name none."""

AT_SEA = frozenset({"sailboat", "lighthouse", "fish", "bridge"})
IN_THE_AIR = frozenset({"moon", "fish", "owl", "bird", "butterfly", "rocket", "portrait"})
"""Subjects that stand on nothing and throw no shadow."""

ACCENTS: dict[str, Rgb] = {
    "cat": (0.98, 0.60, 0.62),
    "rabbit": (0.98, 0.64, 0.66),
    "owl": (0.96, 0.62, 0.16),
    "butterfly": (0.24, 0.45, 0.86),
    "dragon": (0.98, 0.48, 0.10),
    "bicycle": (0.80, 0.56, 0.30),
    "castle": (0.26, 0.40, 0.70),
    "windmill": (0.52, 0.28, 0.18),
}
"""Accents of subjects for which red would be wrong."""
