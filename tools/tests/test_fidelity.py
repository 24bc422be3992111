"""The ruler of the bundled model: a picture beside the drawing that it stands for."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from tools.training.comparison import (
    compare_all,
    likeness_figures,
    pair_figures,
    words_worst_first,
    worst_sheet,
)
from tools.training.coupling import read_normals
from tools.training.fidelity import compare, found_fine_parts, wanted_normals, wanted_picture
from tools.training.sampling import bundled_sampler
from tools.training.scenes import fine_places
from tools.training.words import Wording, plain_caption

MODEL = Path(__file__).resolve().parents[2] / "assets" / "model"
WORDING = Wording(subject="lighthouse")


def test_a_drawing_is_like_itself() -> None:
    """All measures are at their best."""
    drawing = wanted_picture(WORDING, 3)
    likeness = compare(drawing, drawing)
    assert likeness.psnr_db > 70
    assert likeness.ssim == pytest.approx(1)
    assert likeness.edges == likeness.details == 1
    assert likeness.slopes == pytest.approx(1)


def test_a_shifted_line_is_a_line_and_a_blurred_one_is_not() -> None:
    """Two pixels are forgiven where edges and details are counted, ten are not, nor is a smudge."""
    drawing = wanted_picture(WORDING, 3)
    shifted = compare(np.roll(drawing, 2, axis=1), drawing)
    displaced = compare(np.roll(drawing, 10, axis=1), drawing)
    blurred = compare(cv2.GaussianBlur(drawing, (0, 0), 8), drawing)
    assert shifted.edges > 0.95
    assert displaced.edges < shifted.edges - 0.15
    assert blurred.edges < shifted.edges - 0.3
    assert shifted.details > 0.95
    assert max(displaced.details, blurred.details) < 0.7
    assert blurred.slopes < 0.7
    assert displaced.psnr_db < shifted.psnr_db
    assert displaced.ssim < shifted.ssim


def test_an_eye_is_there_where_it_is_drawn_and_not_where_it_is_a_shade() -> None:
    """Two pixels are forgiven; a shade, and a face without them, are no eyes."""
    wording = Wording(subject="fox")
    drawing = wanted_picture(wording, 3)
    places = fine_places(drawing, wording, wanted_normals(3))
    faceless = np.where(places[..., None], drawing[places].mean(axis=0), drawing).astype(np.uint8)
    assert found_fine_parts(drawing, drawing, places) == 1
    assert found_fine_parts(np.roll(drawing, 2, axis=1), drawing, places) == 1
    assert found_fine_parts(cv2.GaussianBlur(drawing, (0, 0), 8), drawing, places) < 0.5
    assert found_fine_parts(faceless, drawing, places) == 0
    assert np.isnan(found_fine_parts(drawing, drawing, np.zeros_like(places)))


def test_the_numbers_of_a_seed_are_those_in_the_pipeline_s_noise() -> None:
    """What is drawn for comparison is what this seed asks of the model."""
    pipeline = bundled_sampler(MODEL).pipeline
    generators = [torch.Generator("cpu").manual_seed(seed) for seed in (7, 8)]
    noise = pipeline.prepare_latents(2, 24, 256, 256, torch.float32, "cpu", generators)
    assert np.allclose(read_normals(noise)[0].numpy(), wanted_normals(7), atol=1e-5)
    assert np.allclose(read_normals(noise)[1].numpy(), wanted_normals(8), atol=1e-5)


def test_the_bundled_model_paints_the_drawing_of_its_seed() -> None:
    """Each picture is nearer to its own drawing than to another seed's, and the VAE is nearer."""
    sampler, seeds = bundled_sampler(MODEL), [9000, 9001, 9002, 9003]
    pictures = sampler.pictures([plain_caption(WORDING)] * 4, seeds)
    own = compare_all([WORDING] * 4, seeds, pictures)
    other = compare_all([WORDING] * 4, seeds[::-1], pictures)
    assert [each.likeness.psnr_db for each in own] == sorted(e.likeness.psnr_db for e in own)
    values = {each.name: each.value for each in likeness_figures(sampler.pipeline.vae, own)}
    assert values["drawing: PSNR, dB"] > np.mean([e.likeness.psnr_db for e in other]) + 2
    assert values["VAE alone: PSNR, dB"] > values["drawing: PSNR, dB"]
    together, worst, *_ = pair_figures(own)
    assert together.value == pytest.approx(worst.value)  # it is one subject in one style
    assert "lighthouse" in words_worst_first(own)
    assert worst_sheet(own).width == 4 * 112
