"""The program: its commands, and the one place where errors become a line and an exit code."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, Any, Final, cast

import typer

import seedgrid
from seedgrid.cli import library, machine, options, paint, show
from seedgrid.cli.output import complain
from seedgrid.core.errors import SeedGridError, as_ours, is_memory_error
from seedgrid.core.process import first_stops, interrupt, set_up_logging
from seedgrid.diffusion.process import tune_process
from seedgrid.locales import locales

# UsageError of Typer's own copy of click, which has no public name
_USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])
_PASS_ARGUMENTS_ON: Final = {"ignore_unknown_options": True, "allow_extra_args": True}
_INTERRUPTED: Final = 130  # Typer's exit code after any signal

app = typer.Typer(
    name="seedgrid",
    help="Four seeds, pick one, four variations of its words on its seed. Reproducible to the bit.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"seedgrid {seedgrid.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def ui(
    model: options.Model = None,
    library: options.Library = None,
    host: Annotated[
        str, typer.Option(envvar="SEEDGRID_HOST", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(envvar="SEEDGRID_PORT", min=0, max=65535, help="Port; 0 takes a free one."),
    ] = 7860,
    cluster: Annotated[
        str | None,
        typer.Option(help="Paint on a cluster: local, auto, or ray://HOST:PORT (docs/cluster.md)."),
    ] = None,
    lang: Annotated[str, typer.Option(help=f"auto, {', '.join(locales())}.")] = "auto",
) -> None:
    """Open the page; the same as `python app.py`."""
    from seedgrid.web.launch import main

    main(model=model, library=library, host=host, port=port, lang=lang, cluster=cluster)


def worker(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="ray://HOST:PORT", help="The cluster; without one, begin a new one."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            envvar="SEEDGRID_WORKERS", min=0, help="How many here; one a GPU, or one, by default."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where a new cluster listens.")
    ] = 6379,
) -> None:
    """Let a cluster paint on this machine, until stopped."""
    from seedgrid.diffusion.away.ray_node import join

    if workers is not None:
        os.environ["SEEDGRID_WORKERS"] = str(workers)
    join(cluster, port=port)


for command in (
    *(ui, worker, paint.grid, paint.refine, paint.final, paint.matrix, show.verify, show.show),
    *(show.diff, show.probe, show.export, library.import_, machine.models, machine.doctor),
):
    app.command(command.__name__.rstrip("_"))(command)
app.add_typer(library.app, name="library")
app.command("bench", add_help_option=False, context_settings=_PASS_ARGUMENTS_ON)(machine.bench)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process."""
    tune_process()
    set_up_logging()
    if isinstance(sys.stdout, TextIOWrapper):
        # Windows writes other bytes to files and pipes; some terminals lack letters.
        is_shown = sys.stdout.isatty()
        sys.stdout.reconfigure(encoding=None if is_shown else "utf-8", errors="backslashreplace")
    command = typer.main.get_command(app)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with first_stops(interrupt) as interrupts:
            code = command.main(args=words, prog_name="seedgrid", standalone_mode=False)
    except SeedGridError as error:
        complain(str(error))
        return error.exit_code
    except _USAGE_ERROR as error:
        complain(cast("Any", error).format_message())
        return 2
    except (KeyboardInterrupt, typer.Abort):
        complain("Stopped.")
        return interrupts.exit_code
    except SystemExit as end:  # Typer's, when the reader of our output has ended
        return int(end.code or 0)
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            complain(f"{error.filename}: {error.strerror}: check this path.")
            return 2
        if not is_memory_error(error):
            raise
        complain(str(as_ours(error)))
        return 1
    if code == _INTERRUPTED:
        return interrupts.exit_code
    return code if isinstance(code, int) else 0
