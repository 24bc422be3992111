"""One line of the evaluation's table: a figure, what it should be, and whether it is."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "| figure | value | target | met |\n|---|---|---|---|"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table."""

    name: str
    value: float
    target: str = ""
    is_met: bool | None = None

    def line(self) -> str:
        """The line, in Markdown."""
        verdict = {True: "yes", False: "NO", None: "-"}[self.is_met]
        return f"| {self.name} | {self.value:.3f} | {self.target} | {verdict} |"


def at_least(name: str, value: float, bound: float) -> Figure:
    """A figure that has to reach a bound."""
    return Figure(name=name, value=float(value), target=f">= {bound}", is_met=bool(value >= bound))


def at_most(name: str, value: float, bound: float) -> Figure:
    """A figure that must not pass a bound."""
    return Figure(name=name, value=float(value), target=f"<= {bound}", is_met=bool(value <= bound))
