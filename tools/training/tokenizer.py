"""A byte-pair tokenizer of the captions, in the form of CLIP's.

All 256 bytes are in, alone and at a word's end: an unknown word becomes several tokens instead of
ending the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import CLIPTokenizer

from tools.training.places import work_dir
from tools.training.words import caption, draw_wording

MAX_TOKENS = 40
NUM_CAPTIONS = 30_000
NUM_MERGES = 480
CLIP_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
START, END = "<|startoftext|>", "<|endoftext|>"


def train_tokenizer() -> CLIPTokenizer:
    """Learn the merges from drawn captions."""
    rng = np.random.default_rng(5)
    captions = [caption(draw_wording(rng), rng) for _ in range(NUM_CAPTIONS)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    raw.normalizer = normalizers.Lowercase()
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CLIP_PATTERN), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=2 * 256 + NUM_MERGES,
        initial_alphabet=alphabet,
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    raw.train_from_iterator(captions, trainer)
    merges = [tuple(pair) for pair in json.loads(raw.to_str())["model"]["merges"]]
    pieces = (
        alphabet + [letter + "</w>" for letter in alphabet] + ["".join(pair) for pair in merges]
    )
    pieces += [START, END]
    vocab = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=MAX_TOKENS)


def words_in(texts: Iterable[str]) -> list[str]:
    """The words of some texts in small letters, each once, without digits."""
    return list(dict.fromkeys(re.findall(r"[^\W\d_]+", " ".join(texts).lower())))


def grown(words: CLIPTokenizer, new: Iterable[str]) -> CLIPTokenizer:
    """A tokenizer that knows more words, each as one token; what it knew keeps its ids.

    New pieces come behind all others, new merges too, so they join only what the old ones leave
    apart: a word that was one token is as it was, and so is every piece's id. A word that neither
    knows may fall into larger pieces than before.

    Args:
        words: the tokenizer; it is left as it is.
        new: words in small letters; those that are one token already change nothing.
    """
    model = json.loads(words.backend_tokenizer.to_str())["model"]
    vocab, merges = dict(model["vocab"]), [tuple(pair) for pair in model["merges"]]
    made = words
    for word in new:
        pieces = made.tokenize(word)
        while len(pieces) > 1:
            pair = (pieces[0], pieces[1])
            merges.append(pair)
            vocab.setdefault("".join(pair), len(vocab))
            pieces[:2] = ["".join(pair)]
        made = CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=MAX_TOKENS)
    return made


def tokenizer_path() -> Path:
    """The folder that keeps it."""
    return work_dir() / "tokenizer"


def tokenizer() -> CLIPTokenizer:
    """The tokenizer, trained on the first call."""
    if not (tokenizer_path() / "tokenizer.json").exists():
        train_tokenizer().save_pretrained(tokenizer_path())
    return CLIPTokenizer.from_pretrained(tokenizer_path())


def to_ids(words: CLIPTokenizer, captions: list[str]) -> list[list[int]]:
    """Token ids of fixed length, shape `(N, 40)`."""
    return words(captions, padding="max_length", truncation=True, max_length=MAX_TOKENS)[
        "input_ids"
    ]
