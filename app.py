"""Entry point of the web page, on one's own machine and on a Hugging Face Space.

    python app.py --model bundled --port 7860

`seedgrid ui` serves the same page. On a Space, running or importing this file builds the
server `demo`; elsewhere this file defines no `demo`.
"""

from seedgrid.core.process import end_at_once, leave

if __name__ == "__main__":
    end_at_once()  # Before the large imports, so that Ctrl+C ends them without a traceback.

import argparse
import os
import sys
from collections.abc import Sequence

from seedgrid.core.errors import SeedGridError
from seedgrid.core.process import set_up_logging
from seedgrid.diffusion.process import tune_process

if __name__ == "__main__" or "SPACE_ID" in os.environ:
    tune_process()  # Before Gradio is imported. Outside Spaces, importing this file tunes nothing.

from seedgrid.web.launch import (
    HOST,
    PORT,
    build_space,
    languages,
    main,
    say,
    serve,
    wait_until_stopped,
    warm,
)


def _read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="app.py", description="Open SeedGrid's page.")
    parser.add_argument("--model", help="bundled, a folder, a hub id, or a .safetensors file")
    parser.add_argument("--library", help="the folder that keeps the pictures")
    host = os.environ.get("SEEDGRID_HOST") or HOST
    parser.add_argument("--host", default=host, help=f"address to listen on ({host})")
    port = os.environ.get("SEEDGRID_PORT") or PORT
    parser.add_argument("--port", type=int, default=port, help=f"port; 0 takes a free one ({port})")
    parser.add_argument("--cluster", help="paint on a cluster: local, auto, or ray://HOST:PORT")
    parser.add_argument("--lang", default="auto", choices=languages(), help="language of the page")
    return parser.parse_args(arguments)


if "SPACE_ID" in os.environ:
    set_up_logging()
    demo, _services = build_space()
    warm(_services.studio)
    if __name__ == "__main__":
        serve(demo)
        wait_until_stopped(demo, _services.studio)
        leave(0)
elif __name__ == "__main__":
    set_up_logging()
    try:
        main(**vars(_read_arguments(sys.argv[1:])))
    except SeedGridError as error:
        say(f"error: {error}")
        leave(error.exit_code)
    leave(0)
