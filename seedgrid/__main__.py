"""`python -m seedgrid`, and the installed command: the command line as a process of its own."""

from seedgrid.core.process import end_at_once, leave


def main() -> None:
    """Run the command line; whatever comes, a signal ends it without a traceback."""
    end_at_once()
    from seedgrid.cli import main as run

    leave(run())


if __name__ == "__main__":
    main()
