"""The program: its commands, and the one place where errors become a line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final, cast

import typer

import seedgrid
from seedgrid.cli import bench, check, keep, look, machine, models, paint, serve, share
from seedgrid.cli.output import complain
from seedgrid.core.errors import SeedGridError, is_memory_error, told_of
from seedgrid.core.process import first_stops, interrupt, set_up_logging
from seedgrid.diffusion.process import tune_process

# Typer carries a copy of click since 0.25 and uses the real one before; this is either's class.
_USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])
_STOPPED: Final = 130
"""What Typer makes of an interrupt, whichever signal it was."""

app = typer.Typer(
    name="seedgrid",
    help="Four seeds, pick one, four variations of its words on its seed. Reproducible to the bit.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("ui")(serve.ui)
app.command("worker")(serve.worker)
app.command("grid")(paint.grid)
app.command("refine")(paint.refine)
app.command("final")(paint.final)
app.command("matrix")(paint.matrix)
app.command("verify")(check.verify)
app.command("show")(look.show)
app.command("diff")(look.diff)
app.command("probe")(check.probe)
app.command("export")(share.export)
app.command("import")(share.import_)
app.add_typer(keep.app, name="library")
app.command("models")(models.models)
app.command("doctor")(machine.doctor)
app.command("bench")(bench.bench)


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"seedgrid {seedgrid.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; those of the process by default.
    """
    tune_process()
    set_up_logging()
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
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if not is_memory_error(error):
            raise
        complain(str(told_of(error)))
        return 1
    if code == _STOPPED:
        return interrupts.exit_code
    return code if isinstance(code, int) else 0
