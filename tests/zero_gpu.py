"""ZeroGPU without a GPU: the real `spaces` package forks and pickles; the lender is of our own.

    python tests/zero_gpu.py MODEL

What Hugging Face answers is answered here, and the two functions that touch CUDA in the fork do
nothing. All else is as on a Space: torch is patched in the parent and refuses CUDA there, each
call asks for its seconds, and the fork is kept. Paints a batch twice and prints what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

ASKED: list[tuple[str, int]] = []
"""What the lender was asked, and for how many seconds."""


class Lender(BaseHTTPRequestHandler):
    """Lends whatever is asked for; names and answers are those of `spaces/zero/api.py`."""

    def do_POST(self) -> None:
        asked = urlsplit(self.path)
        seconds = parse_qs(asked.query).get("durationSeconds", ["0"])
        ASKED.append((asked.path.strip("/"), int(seconds[0])))
        lent = {"idle": True, "nvidiaIndex": 0, "nvidiaUUID": "", "allowToken": "token"}
        body = json.dumps(lent).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def enter_zero_gpu() -> None:
    """Make this process one of a ZeroGPU Space; torch of a processor lacks three names for it."""
    lender = ThreadingHTTPServer(("127.0.0.1", 0), Lender)
    threading.Thread(target=lender.serve_forever, daemon=True).start()
    os.environ["SPACES_ZERO_GPU"] = "true"
    os.environ["SPACES_ZERO_DEVICE_API_URL"] = f"http://127.0.0.1:{lender.server_port}"
    torch.version.cuda = torch.version.cuda or "12.8"  # type: ignore[assignment]
    torch._C._cuda_init = getattr(torch._C, "_cuda_init", torch.cuda.is_initialized)
    torch.cuda._is_in_bad_fork = torch.cuda.is_initialized
    import spaces.zero.torch as lent

    lent.init = lent.move = lambda *_, **__: None


def is_cuda_forbidden() -> bool:
    """Tell whether torch refuses CUDA in this process, as in the parent of a Space."""
    try:
        torch._C._cuda_init()
    except RuntimeError:
        return True
    return False


def main(model: str) -> None:
    """Paint two batches as a Space does."""
    enter_zero_gpu()
    from painting import PLACEMENT
    from watches import SilentWatch

    from seedgrid.core.picture import pixels_sha256
    from seedgrid.core.request import Request, resolve
    from seedgrid.diffusion.away.computing import AwayBackend, ZeroGpu
    from seedgrid.diffusion.deferred import DeferredBackend

    backend = AwayBackend(ZeroGpu(), DeferredBackend())
    size = {"width": 64, "height": 64, "num_inference_steps": 2}
    request = Request(prompt="a red fox", seeds=(0, 1, 2, 3), **size)
    recipes = resolve(request, backend.card(model))
    watch = SilentWatch()
    painted = [backend.paint(recipes, PLACEMENT, watch) for _ in range(2)]
    print(  # noqa: T201 (a command prints)
        json.dumps(
            {
                "pictures": [[pixels_sha256(each) for each in batch] for batch in painted],
                "passport": backend.prepare(recipes[0], PLACEMENT).digest,
                "steps": len(watch.steps),
                "asked": ASKED,
                "forbidden": is_cuda_forbidden(),
                "recipes": [recipe.model_dump_json() for recipe in recipes],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
