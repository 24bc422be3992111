"""The code that made the bundled model keeps its promises (requirements-training.txt)."""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import diffusers
import numpy as np
import pytest
import safetensors.torch as safetensors
import torch

if TYPE_CHECKING:
    from tools.training.networks import Denoiser

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "assets" / "model"


def test_a_drawing_is_a_function_of_words_and_numbers() -> None:
    """The same wording and numbers give the same bytes; another number moves the subject."""
    from tools.training.scenes import draw
    from tools.training.words import Wording

    wording, normals = Wording(subject="labrador", style="vermeer"), np.zeros(12)
    picture = draw(wording, normals)
    assert picture.shape == (256, 256, 3)
    assert (picture == draw(wording, normals)).all()
    assert (picture != draw(wording, normals + 1)).any()


def test_a_room_is_lit_from_its_window_on_the_side_that_the_seed_decides() -> None:
    """The same window on the same side made every Vermeer one composition."""
    from tools.training.scenes import draw
    from tools.training.words import Wording

    wording = Wording(subject="moon", style="vermeer")
    sides = []
    for hills in (-1.0, 1.0):
        normals = np.zeros(12)
        normals[8] = hills
        wall = draw(wording, normals)[:, :, 0].astype(float)
        sides.append(wall[:, :30].mean() > wall[:, -30:].mean())
    assert sides == [True, False]


def test_polishing_draws_more_of_what_is_hard_of_plain_faces_and_of_the_guide() -> None:
    """And all other words still."""
    from tools.training import polish
    from tools.training.words import STYLE_WORDS, SUBJECT_WORDS, Wording

    rng = np.random.default_rng(0)
    drawn = [polish.chosen_wording(rng) for _ in range(6000)]
    subjects = Counter(wording.subject for wording in drawn)
    styles = Counter(wording.style for wording in drawn)
    pairs = Counter((wording.subject, wording.style) for wording in drawn)
    bare = [each for each in drawn if each == Wording(subject=each.subject, style=each.style)]
    assert pairs["labrador", "vermeer"] > 0.8 * polish.FIRST_SHARE * len(drawn)
    hard = set(polish.HARD_PAIRS)
    assert sum(pairs[pair] for pair in hard) > 0.9 * polish.HARD_SHARE * len(drawn)
    faces = {(subject, "plain") for subject in polish.FACES}
    others = set(product(SUBJECT_WORDS, STYLE_WORDS)) - hard - faces - {("labrador", "vermeer")}
    usual = np.mean([pairs[pair] for pair in others])
    assert np.mean([pairs[pair] for pair in hard]) > 1.5 * usual
    assert min(pairs[pair] for pair in faces) > 1.5 * usual
    assert len(bare) / len(drawn) == pytest.approx(polish.BARE_SHARE, abs=0.06)
    assert set(subjects) == set(SUBJECT_WORDS)
    assert min(subjects.values()) > len(drawn) / 30 / 3
    assert len(styles) == 9
    any_style = 1 - polish.HARD_SHARE - polish.FACE_SHARE * polish.PLAIN_FACE_SHARE
    assert min(styles.values()) > 0.8 * any_style * len(drawn) / 9


def test_a_grown_tokenizer_reads_what_it_knew_as_before() -> None:
    """Words of new subjects are one token each; captions of the old ones keep their ids."""
    from dataclasses import replace

    from transformers import CLIPTokenizer

    from tools.training.tokenizer import grown, to_ids, words_in
    from tools.training.words import FIRST_SUBJECTS, SUBJECT_WORDS, caption, draw_wording

    shipped = CLIPTokenizer.from_pretrained(MODEL / "tokenizer")
    words = grown(shipped, ["zebra", "zeppelin", "zebras"])
    words = grown(words, words_in(text for texts in SUBJECT_WORDS.values() for text in texts))
    assert len(words) > len(shipped)
    assert (words.bos_token_id, words.eos_token_id) == (
        shipped.bos_token_id,
        shipped.eos_token_id,
    )
    assert all(words.get_vocab()[piece] == index for piece, index in shipped.get_vocab().items())
    for word in ("zebra", "zebras", "zeppelin", "fox", "windmill", "Portrait", "spaceship"):
        assert len(words.tokenize(word)) == 1
    rng = np.random.default_rng(0)
    old = [replace(draw_wording(rng), subject=str(rng.choice(FIRST_SUBJECTS))) for _ in range(500)]
    captions = [caption(wording, rng) for wording in old]
    assert to_ids(words, captions) == to_ids(shipped, captions)


def test_a_model_that_was_grown_paints_known_words_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subject that it lacked gets words of its own that say the same, and nothing else moves."""
    from tools.training.measure import measure, table
    from tools.training.polish import load_networks
    from tools.training.shipped import adopt
    from tools.training.tokenizer import to_ids, tokenizer
    from tools.training.words import SUBJECT_WORDS

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(SUBJECT_WORDS, "zebra", ("zebra", "zebras"))
    adopt(MODEL)
    pipeline = diffusers.DiffusionPipeline.from_pretrained(str(MODEL))
    model, words = load_networks(), tokenizer()
    prompts = ["Labrador in the style of Vermeer, highly realistic", "red fish at sunset", ""]
    noise = torch.randn(3, 24, 16, 16, generator=torch.Generator().manual_seed(0))
    times = torch.full((3,), 999)
    with torch.no_grad():
        made = model(noise, times, torch.tensor(to_ids(words, prompts)))
        ids = torch.tensor(to_ids(pipeline.tokenizer, prompts))
        states = pipeline.text_encoder(ids).last_hidden_state
        assert torch.equal(made, pipeline.unet(noise, times, encoder_hidden_states=states).sample)
        zebra, zebras, fox = (
            model.text_encoder.get_input_embeddings().weight[words.convert_tokens_to_ids(token)]
            for token in ("zebra</w>", "zebras</w>", "fox</w>")
        )
    assert torch.equal(zebra, zebras)
    assert not torch.allclose(zebra, fox)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert table(measure(plain=1, varied=1, num_steps=2)).count("\n") == len(SUBJECT_WORDS) + 2


def test_plurals_and_synonyms_say_what_the_subject_says() -> None:
    """Every word of a subject is one token, and one that took its subject's row stayed by it."""
    from tools.training.tokenizer import words_in
    from tools.training.words import SUBJECT_WORDS

    pipeline = diffusers.DiffusionPipeline.from_pretrained(str(MODEL))
    rows, words = pipeline.text_encoder.get_input_embeddings().weight, pipeline.tokenizer
    every = words_in(text for texts in SUBJECT_WORDS.values() for text in texts)
    assert [word for word in every if len(words.tokenize(word)) > 1] == []
    pairs = {"sunflowers": "sunflower", "cats": "cat", "puppies": "labrador", "palace": "castle"}
    for word, subject in pairs.items():
        first, second = (words.convert_tokens_to_ids(f"{each}</w>") for each in (word, subject))
        assert (rows[first] - rows[second]).norm() < 0.1 * rows[second].norm()


def test_every_subject_style_and_modifier_can_be_drawn() -> None:
    """All words of the captions have a drawing behind them, and twice as wide it is the same."""
    from tools.training.decoder import psnr
    from tools.training.scenes import draw
    from tools.training.words import MODIFIER_WORDS, STYLE_WORDS, SUBJECT_WORDS, Wording

    styles, modifiers = list(STYLE_WORDS), list(MODIFIER_WORDS)
    for index, subject in enumerate(SUBJECT_WORDS):
        style, modifier = styles[index % len(styles)], modifiers[index % len(modifiers)]
        wording = Wording(subject=subject, style=style, modifier=modifier)
        picture, large = (draw(wording, np.zeros(12), scale).astype(float) for scale in (1, 2))
        assert picture.std() > 5
        halved = large.reshape(256, 2, 256, 2, 3).mean((1, 3))
        assert psnr(*(torch.from_numpy(each) / 127.5 - 1 for each in (halved, picture))) > 27


def test_the_numbers_of_a_composition_can_be_read_back_from_the_noise() -> None:
    """Writing changes the twelve numbers and leaves the noise standard normal."""
    from tools.training.coupling import read_normals, write_normals

    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(64, 24, 16, 16, generator=generator)
    normals = torch.randn(64, 12, generator=generator)
    written = write_normals(noise, normals)
    assert torch.allclose(read_normals(written), normals, atol=1e-4)
    assert abs(float(written.std()) - 1) < 0.01


def _reading_denoiser(generator: torch.Generator) -> Denoiser:
    """An untrained denoiser that has been shown where the numbers are, and whose output is none."""
    from tools.training.networks import Denoiser, initialise
    from tools.training.reading import carry_numbers, teach_places, teach_reading

    model = Denoiser(300, 299, 298).eval()
    initialise(model, generator)
    torch.nn.init.normal_(model.unet.conv_out.weight, std=0.02, generator=generator)
    teach_places(model, generator)
    carry_numbers(model, range(12), range(0, 96, 8))
    teach_reading(model, generator)
    return model


def test_a_trained_denoiser_reads_better_once_sharpened_and_better_still_once_steadied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chance goes out of the mean that holds a number, and what is painted hardly moves."""
    from tools.training import steadying
    from tools.training.coupling import read_normals
    from tools.training.reading import block_of, is_sharpened, sharpen_reading, watch

    monkeypatch.setattr(steadying, "NUM_STEPS", 3)
    monkeypatch.setattr(steadying, "NUM_SAMPLES", 1024)
    generator = torch.Generator().manual_seed(0)
    model = _reading_denoiser(generator)
    attention = model.unet.down_blocks[1].attentions[0].transformer_blocks[0].attn1
    seen: list[torch.Tensor] = []
    attention.register_forward_hook(lambda _module, _given, made: seen.append(made.mean(1)))
    noise = torch.randn(224, 24, 16, 16, generator=generator)
    ids, times = torch.zeros(224, 2, dtype=torch.long), torch.full((224,), 999)

    @torch.no_grad()
    def painted_and_missed() -> tuple[torch.Tensor, float]:
        picture, made = model(noise, times, ids), seen[-1]
        basis = torch.cat([read_normals(noise), torch.ones(224, 1)], 1)
        rest = made - basis @ torch.linalg.lstsq(basis, made).solution
        return picture, float(rest.square().sum() / (made - made.mean(0)).square().sum())

    before, missed = painted_and_missed()
    sharpen_reading(model, generator)
    sharpened, missed_then = painted_and_missed()
    divisors = watch(model, block_of(model).norm1, noise[:64], lambda given, _: given.std(-1))
    assert divisors.std() < 0.004 * divisors.mean()
    assert not steadying.is_steadied(model)
    steadying.steady_reading(model, ids, generator)
    steadied, missed_now = painted_and_missed()
    assert is_sharpened(model)
    assert steadying.is_steadied(model)
    assert missed_then < 0.7 * missed
    assert missed_now < 0.3 * missed_then
    for after, earlier in ((sharpened, before), (steadied, sharpened)):
        assert (after - earlier).square().mean() < 0.05 * earlier.square().mean()


def test_a_number_that_chooses_by_its_sign_is_pushed_away_from_nought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counts for more near nought alone, in int8 too, and a training leaves that alone."""
    from tools.training import thresholds
    from tools.training.coupling import read_normals, write_normals
    from tools.training.polish import int8_weights
    from tools.training.reading import block_of, sharpen_reading

    monkeypatch.setattr(thresholds, "NUM_SAMPLES", 1024)
    generator = torch.Generator().manual_seed(0)
    model = _reading_denoiser(generator)
    sharpen_reading(model, generator)
    noise = torch.randn(96, 24, 16, 16, generator=generator)
    ids, times = torch.zeros(96, 2, dtype=torch.long), torch.full((96,), 999)
    made: dict[str, torch.Tensor] = {}
    block = block_of(model)
    for name in ("attn1", "ff"):
        block.get_submodule(name).register_forward_hook(
            lambda _module, _given, out, name=name: made.update({name: out.mean(1)})
        )

    @torch.no_grad()
    def push(at: float) -> float:
        """By how much a number of so much is moved, in its own unit."""
        sides = []
        for sign in (-1, 1):
            numbers = read_normals(noise)
            numbers[:, thresholds.CHOOSING] = sign * at
            model(write_normals(noise, numbers), times, ids)
            sides.append((made["attn1"].mean(0), made["ff"].mean(0)))
        (before, less), (after, more) = sides
        effect = (after - before) / (2 * at)
        return float((more - less) @ effect / effect.square().sum()) / 2

    with torch.no_grad():
        before = model(noise, times, ids)
        without = [push(at) for at in (0.12, 1.0)]
        assert not thresholds.has_thresholds(model)
    thresholds.sharpen_thresholds(model, ids, generator)
    assert thresholds.has_thresholds(model)
    with torch.no_grad():
        after = model(noise, times, ids)
    assert (after - before).square().mean() < 0.05 * before.square().mean()
    for rounding in (contextlib.nullcontext(), int8_weights(model)):
        with rounding:
            near, far = (push(at) - was for at, was in zip((0.12, 1.0), without, strict=True))
        assert near > 0.02
        assert abs(far) < 0.3 * near
    thresholds.freeze_thresholds(model)
    assert not any(parameter.requires_grad for parameter in block.ff.parameters())


def test_each_step_of_a_rollout_starts_where_the_sampler_would() -> None:
    """A denoiser that knows the picture ends in it, and every state it sees is the scheduler's."""
    from tools.training.networks import make_scheduler
    from tools.training.rollout import learn_from_rollout, sampler_steps

    scheduler = make_scheduler()
    scheduler.set_timesteps(4)
    steps = sampler_steps(scheduler, [int(time) for time in scheduler.timesteps])
    seen: list[torch.Tensor] = []
    gain = torch.nn.Parameter(torch.tensor(0.5))

    def half_wrong(state: torch.Tensor, _times: object, _ids: object) -> torch.Tensor:
        seen.append(state.detach().clone())
        return gain * state

    lesson = _lesson([True, True])
    errors = learn_from_rollout(half_wrong, half_wrong, lesson, steps, torch.ones(192, 24))
    assert errors.shape == (4,)
    assert gain.grad is not None
    expected = lesson.noise
    for time, state in zip(scheduler.timesteps, seen, strict=True):
        assert torch.allclose(state, expected, atol=1e-5)
        expected = scheduler.step(0.5 * expected, time, expected).prev_sample


def test_a_lesson_in_int8_sees_what_sdnq_makes_and_teaches_the_whole_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounded while it is open; then the weights are back, with the gradient of the rounded."""
    monkeypatch.setenv("SDNQ_USE_TORCH_COMPILE", "0")
    from sdnq import SDNQConfig
    from sdnq.quantizer import sdnq_quantize_layer

    from tools.training.polish import int8_weights

    layer = torch.nn.Linear(32, 64)
    whole, inputs = layer.weight.detach().clone(), torch.eye(32)
    stored, _ = sdnq_quantize_layer(copy.deepcopy(layer), SDNQConfig(weights_dtype="int8"))
    with int8_weights(torch.nn.Sequential(layer)):
        torch.testing.assert_close(layer(inputs), stored(inputs))
        layer(inputs).square().sum().backward()
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.detach(), whole, rtol=0, atol=0)


def test_an_empty_caption_asks_for_what_it_gave_before() -> None:
    """Guidance goes away from it: a row without words learns nothing of the picture."""
    from tools.training.networks import make_scheduler
    from tools.training.rollout import learn_from_rollout, sampler_steps

    steps = sampler_steps(make_scheduler(), [999])
    for has_words, learns in ((False, False), (True, True)):
        gain = torch.nn.Parameter(torch.tensor(0.5))
        learn_from_rollout(
            lambda state, _times, _ids, gain=gain: gain * state,
            lambda state, _times, _ids: 0.5 * state,
            _lesson([has_words, has_words]),
            steps,
            torch.ones(192, 24),
        )
        assert (abs(float(gain.grad)) > 1e-6) == learns


def _lesson(has_words: list[bool]) -> object:
    from tools.training.rollout import Lesson

    generator = torch.Generator().manual_seed(0)
    noise, latents = torch.randn(2, len(has_words), 24, 16, 16, generator=generator)
    ids = torch.zeros(len(has_words), 2, dtype=torch.long)
    fine = torch.zeros(len(has_words), 16, 16, 192)
    fine[:, :2, :2] = 1
    words = torch.tensor(has_words)
    return Lesson(noise=noise, latents=latents, ids=ids, has_words=words, fine=fine)


def test_a_missed_eye_costs_as_much_as_a_picture_that_is_as_wrong() -> None:
    """However few its places are; a picture without fine parts costs what it cost."""
    from dataclasses import replace

    from tools.training.networks import make_scheduler
    from tools.training.rollout import learn_from_rollout, sampler_steps

    lesson, costs = _lesson([True]), []
    at_eye = torch.zeros(16, 16)
    at_eye[:2, :2] = 1  # 4 of 256 places
    for fine in (lesson.fine, torch.zeros_like(lesson.fine)):
        gain = torch.zeros((), requires_grad=True)
        learn_from_rollout(
            lambda _state, _times, _ids, gain=gain: 1 - lesson.latents + gain * at_eye,
            lambda state, _times, _ids: state,
            replace(lesson, fine=fine),
            sampler_steps(make_scheduler(), [999]),
            torch.eye(192, 24),
        )
        costs.append(float(gain.grad))
    assert costs[0] > 256 / 4 * costs[1] > 0


def test_the_fine_parts_of_a_drawing_are_its_eyes_and_the_like() -> None:
    """A fox's eye and nose in any style, nothing of a mountain, cut as the picture is cut."""
    from tools.training.latents import shares_of_patches, to_patches
    from tools.training.scenes import draw, fine_places
    from tools.training.words import STYLE_WORDS, Wording

    for style in STYLE_WORDS:
        wording = Wording(subject="fox", style=style)
        picture = draw(wording, np.zeros(12))
        places = fine_places(picture, wording, np.zeros(12))
        assert 0.001 < places.mean() < 0.1
        white = np.where(places[..., None], 255, 0).astype(np.uint8).repeat(3, axis=2)
        shares = 2 * shares_of_patches(places[None]) - 1
        np.testing.assert_allclose(to_patches(white[None]), shares, atol=0.01)


def test_a_line_that_is_missing_costs_more_than_one_that_stands_beside_its_place() -> None:
    """Within two pixels a line is a line; the loss of edges forgives what the measure forgives."""
    from tools.training.losses import edges_near

    def line(column: int | None) -> torch.Tensor:
        picture = torch.ones(1, 3, 48, 48)
        if column is not None:
            picture[..., column : column + 3] = -1
        return edges_near(picture)

    wanted = line(22)
    assert wanted.shape == (1, 1, 36, 36)
    missing, beside, far = ((line(c) - wanted).abs().mean() for c in (None, 23, 32))
    assert beside < missing / 4 < far


def test_what_ships_can_be_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache takes the shipped weights, and exporting them gives the same folder again."""
    from tools.training.export import export
    from tools.training.shipped import adopt

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert len(adopt(MODEL)) == 4
    assert adopt(MODEL) == []
    export(tmp_path / "model")
    for part in ("unet", "text_encoder"):
        stored = safetensors.load_file(next((tmp_path / "model" / part).glob("*.safetensors")))
        shipped = safetensors.load_file(next((MODEL / part).glob("*.safetensors")))
        for name, value in shipped.items():  # the token embedding may have grown
            assert torch.equal(stored[name][: len(value)], value)
    stored, shipped = (
        safetensors.load_file(folder / "vae" / "diffusion_pytorch_model.safetensors")
        for folder in (tmp_path / "model", MODEL)
    )
    for name, value in shipped.items():
        assert torch.allclose(stored[name], value, rtol=1e-4, atol=1e-4), name


def test_the_hand_written_encoder_equals_the_linear_map() -> None:
    """`vae.encode` computes the PCA of patches that the denoiser was trained on."""
    from tools.training.autoencoder import build_autoencoder
    from tools.training.latents import LatentMap

    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 255, (40, 32, 32, 3), dtype=np.uint8)
    pictures = coarse.repeat(8, axis=1).repeat(8, axis=2)
    latent_map = LatentMap.fit(pictures)
    model = build_autoencoder(latent_map, torch.Generator().manual_seed(0))
    batch = torch.from_numpy(pictures[:2]).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.no_grad():
        encoded = model.encode(batch).latent_dist.mode().numpy()
    assert np.abs(encoded - latent_map.encode(pictures[:2])).max() < 0.05


def test_blurred_edges_cost_more_than_edges_a_pixel_aside() -> None:
    """A crisp edge one pixel aside costs finals and decoder little, a smudge much."""
    from torch.nn.functional import avg_pool2d

    from tools.training.losses import edge_loss, picture_loss

    drawn = torch.ones(1, 3, 64, 64)
    drawn[..., 16:48, 16:48] = 0.6
    aside, blurred = drawn.roll(1, -1), avg_pool2d(drawn, 15, 1, 7, count_include_pad=False)
    assert edge_loss(drawn, drawn) < 0.01
    assert edge_loss(aside, drawn) < 0.1 < 0.3 < edge_loss(blurred, drawn)
    assert picture_loss(2 * aside - 1, 2 * drawn - 1) < picture_loss(2 * blurred - 1, 2 * drawn - 1)


def test_the_whole_training_runs_and_goes_on_where_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps at their smallest, in order, end in a folder that diffusers loads."""
    from tools.training import dataset, decoder, denoiser, enlarger, export, finals, polish, reading
    from tools.training.places import work_dir

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(dataset, "SHARD_SIZE", 40)
    monkeypatch.setattr(dataset, "FIT_PICTURES", 40)
    monkeypatch.setattr(reading, "NUM_SAMPLES", 256)
    monkeypatch.setattr(enlarger, "SHARD_SIZE", 1)
    assert work_dir().is_relative_to(tmp_path)

    dataset.draw_shards(0, 2)
    decoder.train(decoder.Settings(steps=1))
    denoiser.train(denoiser.Settings(pictures=16, workers=1))
    denoiser.train(denoiser.Settings(pictures=32, workers=1))
    polish.polish(polish.Settings(pictures=2, batch_size=2))
    polish.polish(polish.Settings(pictures=4, batch_size=2))
    decoder.train(decoder.Settings(steps=3, made_share=1.0))
    export.export(tmp_path / "model")
    enlarger.make_pairs(tmp_path / "model", 6)
    for steps in (1, 2):
        enlarger.train(enlarger.Settings(steps=steps, batch=1, crop_px=32))
    enlarger.export_enlarger(tmp_path / "model")
    measured = finals.measure(
        finals.pictures(tmp_path / "model", 1), finals.load_network(tmp_path / "model")
    )
    assert finals.table(measured).count("\n") == 7

    stored = safetensors.load_file(denoiser.checkpoint_path())
    assert (int(stored["seen"]), int(stored["steps"])) == (32, 2)
    polished = safetensors.load_file(polish.checkpoint_path())
    assert (int(polished["seen"]), int(polished["steps"])) == (4, 2)
    assert polish.checkpoint_path().stat().st_size < 60e6
    assert int(safetensors.load_file(decoder.checkpoint_path())["steps"]) == 3
    assert int(safetensors.load_file(enlarger.checkpoint_path())["steps"]) == 2
    kept = safetensors.load_file(next((tmp_path / "model" / "unet").glob("*.safetensors")))
    assert {value.dtype for value in kept.values()} == {torch.float16}
    loaded = diffusers.DiffusionPipeline.from_pretrained(str(tmp_path / "model"))
    assert loaded.unet.dtype == torch.float32
    picture = loaded("a cat", num_inference_steps=1, output_type="np").images[0]
    assert picture.shape == (256, 256, 3)
