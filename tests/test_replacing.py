"""An attribute is something else for a while, and then what it was, and where it was."""

from __future__ import annotations

import pytest

from seedgrid.diffusion.patch import replaced


class Owner:
    def name(self) -> str:
        return "of the class"


def test_what_the_class_gave_is_uncovered_again() -> None:
    """Nothing stays behind on the object, whatever happens in the block."""
    owner = Owner()
    with pytest.raises(TypeError), replaced(owner, "name", lambda: "another"):
        len(owner.name)  # type: ignore[arg-type]
    assert "name" not in vars(owner)
    assert owner.name() == "of the class"


def test_what_was_its_own_comes_back() -> None:
    """Blocks may lie in blocks."""
    owner = Owner()
    with replaced(owner, "name", lambda: "outer"):
        with replaced(owner, "name", lambda: "inner"):
            assert owner.name() == "inner"
        assert owner.name() == "outer"
    assert owner.name() == "of the class"
