"""`python -m tools.training COMMAND`: remake the bundled model, step by step or all at once.

Every step goes on where it was stopped; what it makes lies in the user's cache folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

NUM_SHARDS = 48
PICTURES = 400_000
DECODER_STEPS = 3_000
REPAIR_STEPS = 3_000
ENLARGER_SHARDS = 12
ENLARGER_STEPS = 2_500


def _gently(threads: int) -> None:
    """Leave the machine to whoever else wants it."""
    import torch

    os.nice(max(0, 19 - os.nice(0)))
    torch.set_num_threads(threads)


def _device(arguments: argparse.Namespace) -> str:
    """Where to train: what was asked for, or else a GPU where there is one."""
    import torch

    return arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")


def _adopt(arguments: argparse.Namespace) -> None:
    """Put the weights that ship into an empty cache, to go on from them."""
    from tools.training.shipped import adopt

    for path in adopt(arguments.model):
        print(path)


def _draw(arguments: argparse.Namespace) -> None:
    """Draw the shards of the data set, or one style in them again."""
    from tools.training.dataset import draw_shards, redraw_style, shard_indices

    if arguments.redraw:
        redraw_style(arguments.redraw, shard_indices())
    draw_shards(0, arguments.shards)


def _tokenizer(_arguments: argparse.Namespace) -> None:
    """Learn the tokenizer."""
    from tools.training.tokenizer import tokenizer

    print(f"{len(tokenizer())} tokens")


def _autoencoder(arguments: argparse.Namespace) -> None:
    """Fit the linear encoder, train the decoder."""
    from tools.training import decoder

    _gently(arguments.workers)
    decoder.train(decoder.Settings(steps=arguments.steps))


def _denoiser(arguments: argparse.Namespace) -> None:
    """Train the denoiser and the text encoder."""
    from tools.training import denoiser

    settings = denoiser.Settings(
        pictures=arguments.pictures,
        minutes=arguments.minutes,
        cooldown=arguments.cooldown,
        workers=arguments.workers,
        device=_device(arguments),
    )
    denoiser.train(settings)


def _polish(arguments: argparse.Namespace) -> None:
    """Polish the denoiser along the sampler's own steps."""
    from tools.training import polish

    device = _device(arguments)
    if device == "cpu":
        _gently(1)
    settings = polish.Settings(
        pictures=arguments.pictures,
        minutes=arguments.minutes,
        cooldown=arguments.cooldown,
        batch_size=arguments.batch,
        learning_rate=arguments.rate,
        workers=arguments.workers if device != "cpu" else 1,
        device=device,
    )
    polish.polish(settings)


def _steady(_arguments: argparse.Namespace) -> None:
    """Let the last checkpoint read its numbers without chance; polishing has to follow."""
    from tools.training.polish import steady

    steady()


def _choose(_arguments: argparse.Namespace) -> None:
    """Let the last checkpoint choose at once by a number's sign; polishing has to follow."""
    from tools.training.polish import choose

    choose()


def _measure(arguments: argparse.Namespace) -> None:
    """Print how near the last checkpoint's pictures are to their drawings, by subject."""
    from tools.training import measure

    _gently(1)
    measured = measure.measure(num_steps=arguments.sampler_steps)
    print(measure.table(measured))
    print(measure.write_sheet(measured))


def _repair(arguments: argparse.Namespace) -> None:
    """Let the decoder learn from what the denoiser makes."""
    from tools.training import decoder

    _gently(arguments.workers)
    decoder.train(decoder.Settings(steps=arguments.steps + REPAIR_STEPS, made_share=0.7))


def _export(arguments: argparse.Namespace) -> None:
    """Write the model's folder."""
    from tools.training.export import export

    export(arguments.model)


def _evaluate(arguments: argparse.Namespace) -> None:
    """Print the table, and lay out the pictures that are least like their drawings."""
    from tools.training.evaluate import evaluate
    from tools.training.sampling import bundled_sampler

    worst_path = arguments.model / "sheets" / "worst.jpg"
    print(evaluate(bundled_sampler(arguments.model), worst_path, is_quick=arguments.quick))


def _enlarger(arguments: argparse.Namespace) -> None:
    """Train the network that makes finals, put it into the model's folder, and measure it."""
    from tools.training import enlarger

    _gently(1)
    enlarger.make_pairs(arguments.model, arguments.enlarger_shards)
    enlarger.train(enlarger.Settings(steps=arguments.enlarger_steps, minutes=arguments.minutes))
    print(enlarger.export_enlarger(arguments.model))
    _finals(arguments)


def _finals(arguments: argparse.Namespace) -> None:
    """Hold the large finals against the drawings at their size, and lay some out."""
    from PIL import Image

    from tools.training import finals

    _gently(1)
    held_out = finals.pictures(arguments.model, 16 if arguments.quick else 90)
    network = finals.load_network(arguments.model)
    print(finals.table(finals.measure(held_out, network)))
    path = arguments.model / "sheets" / "finals.jpg"
    Image.fromarray(finals.sheet(held_out[:4], network, 384)).save(path, quality=88)
    print(path)


def _sheet(arguments: argparse.Namespace) -> None:
    """Draw the contact sheets of the model card."""
    from tools.training.sampling import bundled_sampler
    from tools.training.sheets import write_sheets

    for path in write_sheets(bundled_sampler(arguments.model), arguments.model / "sheets"):
        print(path)


def _all(arguments: argparse.Namespace) -> None:
    """Everything, in order."""
    learn = (_draw, _tokenizer, _autoencoder, _denoiser, _steady, _choose, _polish, _repair)
    for step in (*learn, _export, _enlarger, _sheet, _evaluate):
        step(arguments)


def _opening(_arguments: argparse.Namespace) -> None:
    """Paint the four pictures of the opening page with the model that ships."""
    from tools.training.opening import make_opening

    for path in make_opening():
        print(path)


STEPS: dict[str, Callable[[argparse.Namespace], None]] = {
    "adopt": _adopt,
    "draw": _draw,
    "tokenizer": _tokenizer,
    "autoencoder": _autoencoder,
    "denoiser": _denoiser,
    "polish": _polish,
    "steady": _steady,
    "choose": _choose,
    "measure": _measure,
    "repair": _repair,
    "export": _export,
    "enlarger": _enlarger,
    "finals": _finals,
    "evaluate": _evaluate,
    "sheet": _sheet,
    "opening": _opening,
    "all": _all,
}


def _parser() -> argparse.ArgumentParser:
    from tools.training.declared import DEFAULTS
    from tools.training.places import MODEL_DIR

    parser = argparse.ArgumentParser(prog="python -m tools.training", description=__doc__)
    parser.add_argument("command", choices=list(STEPS))
    parser.add_argument("--shards", type=int, default=NUM_SHARDS, help="how many to draw, of 2048")
    parser.add_argument("--redraw", metavar="STYLE", help="draw this style's pictures again")
    parser.add_argument("--steps", type=int, default=DECODER_STEPS, help="of the decoder, in all")
    parser.add_argument("--pictures", type=int, default=PICTURES, help="for the denoiser, in all")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of training, from now")
    parser.add_argument(
        "--cooldown", type=float, default=0.9, help="last share of it with a falling rate"
    )
    parser.add_argument("--workers", type=int, default=2, help="training processes on a CPU")
    parser.add_argument(
        "--model", type=Path, default=MODEL_DIR, help="the folder to write and to evaluate"
    )
    parser.add_argument(
        "--enlarger-shards", type=int, default=ENLARGER_SHARDS, help="pairs for finals, by 24"
    )
    parser.add_argument("--enlarger-steps", type=int, default=ENLARGER_STEPS, help="in all")
    parser.add_argument("--device", help="of the denoiser's training: cpu or cuda")
    parser.add_argument("--batch", type=int, default=24, help="pictures in a step of polishing")
    parser.add_argument("--rate", type=float, default=2.5e-4, help="of learning, in polishing")
    default = DEFAULTS["num_inference_steps"]
    parser.add_argument("--sampler-steps", type=int, default=default, help="when measuring")
    parser.add_argument("--quick", action="store_true", help="evaluate a sample")
    return parser


def main() -> None:
    """Read the command line and run a step."""
    arguments = _parser().parse_args()
    STEPS[arguments.command](arguments)


if __name__ == "__main__":
    main()
