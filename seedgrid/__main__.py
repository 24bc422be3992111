"""Entry point of `python -m seedgrid` and of the installed `seedgrid` command."""

from seedgrid.core.process import end_at_once, leave


def main() -> None:
    """Run the command line; a signal ends the process without a traceback."""
    end_at_once()
    from seedgrid.cli import main as run

    leave(run())


if __name__ == "__main__":
    main()
