"""What portable arithmetic says when it is asked for something it does not define."""

from seedgrid.core.errors import RunError


def refusal(name: str) -> RunError:
    """Return the error for an operation without a portable rule, by its name."""
    return RunError("portable_refused", value=name)
