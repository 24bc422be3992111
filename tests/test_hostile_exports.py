"""A stranger's picture writes nothing of its own into what is generated from it.

One rule for each generated file, and for each of them its attacks: script, environment,
requirements, README, texts of contact sheets, links, file names, lines of the log and of the
terminal.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, run_python
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from pictures import as_entry, make_lineage, make_picture, make_recipe
from refusing import refused

from seedgrid.cli import output
from seedgrid.cli.program import main
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.picture import Entry
from seedgrid.core.process import PlainFormatter
from seedgrid.core.recipe import ModelRef, Passport
from seedgrid.core.text import library_release, one_line
from seedgrid.diffusion import process
from seedgrid.diffusion.backend import ATTENTION_NAMES, DEVICE_KINDS, MAX_THREADS
from seedgrid.export import bundle, script
from seedgrid.formats import png
from seedgrid.formats.links import link_query, read_link
from seedgrid.models import registry

ATTACKS = (
    "2.13.0\n--index-url https://evil.example/simple\nevil",
    "2.13.0 ; os_name == 'posix'",
    "2.13.0 --hash=sha256:00",
    "2.13.0\u2028evil",
    "٢.١٣.٠",
    "1!2.13.0",
    "$(touch evil)",
    "../../evil",
    "https://evil.example",
    '"""; import os; os.abort() #',
    "\\N{BULLET} %s {x} {0.__class__}",
    "\x1b]0;evil\x07\x1b[2J\x9b31m",
    "\u202eevil\u2066",
    ") /JS (app.alert(1)) >> endobj <<",
    "čഅ\\)(<>",
    "狐狸 🦊",
    "",
)
"""What strangers write where a version, a name, a device or a word is expected."""

WORDS = st.sampled_from(ATTACKS) | st.text(max_size=40)
PROMPTS = WORDS.map(lambda text: re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text))


def hostile_passport(text: str, **changes: Any) -> Passport:
    """A passport that says the same wherever it may say anything."""
    words = {
        name: text
        for name, field in Passport.model_fields.items()
        if field.annotation is str and name not in changes
    }
    tables = {name: {text: text, "MKL_CBWR": text} for name in ("precision", "determinism")}
    limits = {"HF_ENDPOINT": text, "MKL_CBWR": text, "CXX": text, text: text}
    return Passport(**(words | tables | {"instruction_limits": limits, "unknown": text} | changes))


def entry_of(
    *, passport: Passport | None = None, path: Path = Path("nowhere.png"), **changes: Any
) -> Entry:
    """A picture as it comes out of a stranger's PNG file."""
    made = make_picture(**changes)
    lineage = make_lineage(change=changes.get("prompt", ""))
    changed = replace(made, passport=passport or made.passport, lineage=lineage)
    data = png.encode(changed)
    record = png.read(data)
    if path.name != "nowhere.png":
        path.write_bytes(data)
    read = replace(made, recipe=record.recipe, passport=record.passport, lineage=record.lineage)
    assert read.pixels_sha256 == record.pixels_sha256
    return as_entry(read, path)


# The script


def split_script(program: str) -> tuple[list[dict[str, Any]], str]:
    """Return the data of a script, and all else that it says, as Python reads it."""
    tree = ast.parse(program)
    (data,) = [node for node in tree.body if is_data(node)]
    tree.body.remove(data)
    return ast.literal_eval(data.value), ast.dump(tree)


def is_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BATCHES"


CLEAN = split_script(script.script([entry_of()]))[1]


@given(prompt=PROMPTS, negative=PROMPTS, text=WORDS)
def test_a_script_is_the_same_program_whatever_its_pictures_say(
    prompt: str, negative: str, text: str
) -> None:
    """Only the data differ, they are a literal, and the words come out of it as they went in."""
    entry = entry_of(prompt=prompt, negative_prompt=negative, passport=hostile_passport(text))

    program = script.script([entry])

    (batch,), rest = split_script(program)
    assert rest == CLEAN
    assert all(is_harmless(line) for line in program.split("\n"))
    assert batch["pictures"][0]["prompt"] == prompt
    assert batch["pictures"][0]["negative_prompt"] == negative


@given(
    text=WORDS,
    threads=st.integers(-(2**62), 2**62),
    limits=st.dictionaries(WORDS | st.sampled_from(process.LIMIT_NAMES), WORDS),
)
def test_of_a_passport_a_script_holds_known_names_and_values_only(
    text: str, threads: int, limits: dict[str, str]
) -> None:
    """Each thing that the script sets is of a closed list or a number within bounds."""
    passport = hostile_passport(text, threads=threads, instruction_limits=limits)

    (batch,), _ = split_script(script.script([entry_of(passport=passport)]))

    said = batch["passport"]
    assert said["device"] in DEVICE_KINDS
    assert said["attention"] in ATTENTION_NAMES
    assert said["memory_format"] in ("channels_last", "contiguous")
    assert said["threads"] is None or 0 < said["threads"] <= MAX_THREADS
    assert said["instruction_limits"] == process.accepted_limits(limits)
    assert all(version == "" or library_release(version) for version in said["versions"].values())
    assert set(said) == {
        *("versions", "device", "instruction_limits", "threads", "attention"),
        *("memory_format", "vae_slicing", "vae_tiling"),
    }


MODEL_ATTACKS = (
    *("/etc/passwd", "a/../../b", "./model", "..", "~root", "-rf/x", "C:\\evil", "//host/share"),
    *("https://evil.example/x", "a/b@main", "a/b\n--index-url", "a\x1b[31m", "a/b ", "a//b"),
    *("a/b.git", "a..b/c", "ä/b", "a/b\u202e", "a" * 97 + "/b", "a*b"),
)


@pytest.mark.parametrize("model_id", MODEL_ATTACKS[::3])
def test_a_model_that_is_no_name_is_not_exported(model_id: str, tmp_path: Path) -> None:
    """Neither a path nor an option, neither an address nor two lines: one sentence, no file."""
    model = ModelRef(id=model_id, weights_sha256="ab" * 32)
    entry = entry_of(model=model, path=tmp_path / "picture.png")

    for export in (lambda: script.script([entry]), lambda: write_bundle(entry, tmp_path)):
        with refused(ModelError, "model_name") as caught:
            export()
        assert str(caught.value).isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize("revision", ["a/../b", "-x", "main\nx", "x?y", ""])
def test_a_revision_that_is_none_is_not_exported(revision: str) -> None:
    """A revision ends in an address of the hub, and in the name of a folder of its cache."""
    model = ModelRef(id="org/name", revision=revision, weights_sha256="ab" * 32)

    with pytest.raises(ModelError):
        script.script([entry_of(model=model)])


# The environment


def test_a_script_sets_no_variable_but_the_known_ones(tmp_path: Path) -> None:
    """Its first lines are run: of what a hostile passport asks for, only real limits arrive."""
    limits = {
        "HF_ENDPOINT": "https://evil.example",
        "LD_PRELOAD": "/evil/evil.so",
        "PATH": "/evil/evil",
        "CUBLAS_WORKSPACE_CONFIG": "evil",
        "mkl_cbwr": "AVX2",
        "MKL_CBWR ": "AVX2",
        "MKL_CBWR=x": "AVX2",
        "MKL_CBWR": "AVX2,STRICT",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2\nLD_PRELOAD=/evil/evil.so",
        "ONEDNN_MAX_CPU_ISA": "AVX2\x00",
        "DNNL_MAX_CPU_ISA": "../../evil",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
    program = script.script([entry_of(passport=Passport(instruction_limits=limits))])
    head = program.split("\nimport diffusers")[0]
    path = tmp_path / "head.py"
    path.write_text(f"{head}\nimport json\nprint(json.dumps(dict(os.environ)))\n", "utf-8")

    variables = json.loads(run_python(path, env={}).stdout)

    assert {name: value for name, value in variables.items() if name != "LC_CTYPE"} == {
        "MKL_CBWR": "AVX2,STRICT",
        "ATEN_CPU_CAPABILITY": "avx2",
        "CUBLAS_WORKSPACE_CONFIG": ":16:8",
    }


WRITES = {
    "seedgrid/cli/program.py": {"os.environ['SEEDGRID_WORKERS'] = str(workers)"},  # a number
    "seedgrid/diffusion/process.py": {"os.environ['GOMP_SPINCOUNT'] = SPIN_COUNT"},
    "seedgrid/diffusion/away/ray_cluster.py": {"os.environ.pop('OMP_NUM_THREADS', None)"},
    "seedgrid/diffusion/away/ray_node.py": {"os.environ.setdefault(name, value)"},  # of SETTINGS
    "seedgrid/diffusion/loading.py": {"os.environ['SDNQ_USE_TORCH_COMPILE'] = '0'"},
    "seedgrid/diffusion/environment.py": {"os.environ[CUBLAS_VARIABLE] = CUBLAS_VALUE"},
    "seedgrid/web/launch.py": {
        "os.environ.setdefault('FORWARDED_ALLOW_IPS', trusted_proxies())",
        "os.environ.setdefault('GRADIO_ANALYTICS_ENABLED', 'False')",
        "os.environ['GRADIO_TEMP_DIR'] = folder",  # made by this process
    },
}
PROCESSES = {
    "seedgrid/diffusion/away/ray_node.py": "os.execv",  # Python again, with its own words
    "seedgrid/models/cards.py": "subprocess.run",  # the driver's own tool, with constant words
}


def test_nobody_else_writes_into_the_environment_or_starts_a_program() -> None:
    """The places that do are known by name, and what they write is a constant."""
    writes: dict[str, set[str]] = {}
    processes: dict[str, str] = {}
    for path in sorted((ROOT / "seedgrid").rglob("*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.unparse(node) if isinstance(node, ast.Assign | ast.Call) else ""
            if re.match(r"os\.(environ(\[.*\] =|\.(update|setdefault|pop)\()|putenv)", text):
                writes.setdefault(place, set()).add(text)
            if re.match(r"(subprocess\.\w+|os\.(system|exec\w*|spawn\w*|popen))\(", text):
                processes[place] = text.partition("(")[0]

    assert writes == WRITES
    assert processes == PROCESSES


# The requirements


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=3))
def test_requirements_are_three_pins_and_nothing_else(versions: list[tuple[str, str, str]]) -> None:
    """Whatever the pictures claim, each line names a library of ours and one release of it."""
    passports = [
        Passport(torch=torch, diffusers=diffusers, transformers=transformers)
        for torch, diffusers, transformers in versions
    ]

    text = script.requirements(passports)

    check_requirements(text)
    if not any(library_release(word) for words in versions for word in words):
        assert text == script.requirements([Passport()])


def check_requirements(text: str) -> None:
    lines = text.split("\n")
    assert lines.pop() == ""
    found = [Requirement(line) for line in lines]
    assert [one.name for one in found] == ["torch", "diffusers", "transformers"]
    assert all(re.fullmatch(r"[a-z]+[=>]=[0-9a-z.]+", line) for line in lines)
    assert not any(one.url or one.extras or one.marker for one in found)


@pytest.mark.parametrize("version", ["1.13.1", "2.5.1+cpu", "2.7.99"])
def test_a_claim_to_be_old_brings_no_old_library(version: str) -> None:
    """Old releases open pickles and run code of models: nobody is sent back to them."""
    assert script.requirements([Passport(torch=version)]).startswith("torch>=2.8\n")


def test_the_oldest_releases_are_those_of_the_package() -> None:
    """What a bundle asks for at least is what SeedGrid itself asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {
        Requirement(text).name: str(Requirement(text).specifier) for text in project["dependencies"]
    }

    for line in script.requirements([Passport()]).split():
        name, oldest = line.split(">=")
        assert f">={oldest}" in asked[name]


# The README and what lies beside it


def write_bundle(entry: Entry, folder: Path) -> Path:
    path = folder / "art.zip"
    bundle.write_bundle([entry], path)
    return path


@given(prompt=PROMPTS, text=WORDS, model_id=st.sampled_from(["org/name", "My Model", "bundled"]))
@settings(max_examples=40)
def test_a_bundle_says_what_a_clean_one_says(
    tmp_path_factory: pytest.TempPathFactory, prompt: str, text: str, model_id: str
) -> None:
    """README and names in the ZIP are the same for hostile words; JSON shows nothing unseen."""
    folder = tmp_path_factory.mktemp("bundle")
    model = ModelRef(id=model_id, weights_sha256="ab" * 32)
    clean = entry_of(model=model, path=folder / "clean.png")
    hostile = entry_of(
        model=model, prompt=prompt, passport=hostile_passport(text), path=folder / "hostile.png"
    )

    with zipfile.ZipFile(write_bundle(clean, folder)) as file:
        expected = file.read("README.txt")
    with zipfile.ZipFile(write_bundle(hostile, folder)) as file:
        readme = file.read("README.txt")
        members = file.namelist()
        recipes = file.read("recipes.json").decode()
        passports = file.read("passports.json").decode()

    assert readme == expected
    assert all(
        re.fullmatch(r"[A-Za-z]+\.(txt|json|py)|pictures/[a-z0-9-]+\.png", m) for m in members
    )
    assert json.loads(recipes)[0]["recipe"]["prompt"] == prompt
    assert all(is_harmless(line) for line in (recipes + passports).split("\n"))


def is_harmless(line: str) -> bool:
    """Tell whether a line holds nothing that moves a cursor, ends a line or turns the reading."""
    return one_line(line) == line


# Links


# With a revision behind it, a hub id is what links name models by.
NO_MODELS = [model_id for model_id in MODEL_ATTACKS if model_id != "a/b@main"]


@given(prompt=PROMPTS, negative=PROMPTS, model_id=st.sampled_from(NO_MODELS), scheduler=WORDS)
def test_a_link_is_a_query_of_ours_or_none(
    prompt: str, negative: str, model_id: str, scheduler: str
) -> None:
    """Letters, digits and escapes: no word ends the query, adds a field, or names a path."""
    recipe = make_recipe(
        prompt=prompt,
        negative_prompt=negative,
        model=ModelRef(id=model_id, weights_sha256="ab" * 32),
        scheduler=(scheduler or "x")[:60],
    )

    query = link_query(recipe)

    assert re.fullmatch(r"[A-Za-z0-9_.~%+=&*-]*", query)
    with pytest.raises(InputError):
        read_link(query)


# Models by name


def test_a_recorded_model_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the id nor the revision in a picture reaches a folder outside of the models'."""
    (tmp_path / "models").mkdir()
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "model_index.json").write_text("{}")
    monkeypatch.setenv("SEEDGRID_MODELS", str(tmp_path / "models"))
    revisions = ("local", "../../..", "main\n")
    pairs = [(name, revision) for name in MODEL_ATTACKS for revision in revisions]
    for model_id, revision in (*pairs, ("org/name", "../../../../tmp/evil")):
        ref = ModelRef(id=model_id, revision=revision, weights_sha256="ab" * 32)
        with refused(ModelError, "model_missing"):
            registry.find_recorded(ref)


# The log and the terminal


@given(WORDS, st.text(max_size=60))
def test_a_log_line_is_one_line(first: str, second: str) -> None:
    """Words in a message, an argument or a logger's name begin no line and move no cursor."""
    record = logging.LogRecord(f"seedgrid{first}", 30, "x", 1, "said: %s", (second,), None)

    line = PlainFormatter("%(name)s: %(message)s").format(record)

    assert is_harmless(line)


def test_commands_print_one_line_for_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What says, complains, tabulates or writes JSON gives as many lines as for a plain word."""
    for attack in ATTACKS:
        output.say(f"picture {attack}")
        output.complain(f"error {attack}")
        output.say_json({"words": attack})
        output.say_table("table", {"row": attack})
        said = capsys.readouterr()
        assert (said.out.count("\n"), said.err.count("\n")) == (4, 1)
        assert all(is_harmless(line) for line in (said.out + said.err).split("\n"))
        assert json.loads(said.out.split("\n")[1]) == {"words": attack}


@pytest.mark.parametrize("attack", ATTACKS[::3])
def test_a_hostile_picture_is_shown_harmlessly(
    attack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show`, as JSON and as a table, and `diff` of two: each line is one of ours."""
    prompt = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", attack)
    clean = entry_of(path=tmp_path / "clean.png")
    model = ModelRef(id=attack[:200] or "x", weights_sha256="ab" * 32)
    hostile = entry_of(
        prompt=prompt, model=model, passport=hostile_passport(attack), path=tmp_path / "hostile.png"
    )
    folder = ["--library", str(tmp_path / "library")]

    assert main(["show", str(hostile.path), *folder]) == 0
    assert main(["show", str(hostile.path), "--json", *folder]) == 0
    assert main(["diff", str(clean.path), str(hostile.path), *folder]) == 0

    lines = capsys.readouterr().out.split("\n")
    assert all(is_harmless(line) for line in lines)
    titles = {line for line in lines if line and not line.startswith((" ", "{"))}
    assert titles == {str(hostile.path), "recipe", "passport", "lineage", "pixels"}
