"""Recipe: all settings that decide a picture. Passport: the environment that computed it.

Equal recipes have equal ids and, with equal passports, give equal pictures. Passports explain why
computations of one recipe differ. What people type is a `Request`; `request.resolve` makes recipes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable
from typing import Annotated, Final, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
    model_validator,
)

from seedgrid.core.errors import InputError

# torch's CPU generator uses only the low 32 bits: seed 2**32 draws what seed 0 draws. JavaScript's
# numbers hold 32 bits exactly.
MAX_SEED: Final = 2**32 - 1
MAX_PROMPT_CHARACTERS: Final = 5000
MIN_SIZE_PX: Final = 32
MAX_SIZE_PX: Final = 2048
MAX_STEPS: Final = 150
MAX_GUIDANCE: Final = 30.0
MAX_SHARES: Final = 256
MAX_FEATHER_PX: Final = 256
MAX_SPREAD: Final = 0.5
MAX_PARENTS: Final = 8
LOCK_WIDTH: Final = 4

_Item = TypeVar("_Item")
LockWidth = Literal[1, 2, 4, 8, 16]  # Threads split other widths unevenly, which changes rounding
LOCK_WIDTHS: Final[tuple[int, ...]] = get_args(LockWidth)
DType = Literal["float32", "bfloat16", "float16", "int8-float32", "int8-bfloat16"]
"""The number format of the computation; with `int8-`, most weights are stored in 8 bits."""
Determinism = Literal["off", "seeded", "strict"]
Arithmetic = Literal["native", "portable-1"]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
StartDigest = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
# Control characters other than tab and newline are refused: databases and tokenizers choke on them.
PromptText = Annotated[
    str,
    StringConstraints(max_length=MAX_PROMPT_CHARACTERS, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$"),
]


_PER_PICTURE: Final = (  # Attributes in which pictures of one batch may differ
    *("prompt", "typed_prompt", "negative_prompt", "seed", "noise_mix"),
    *("parent", "held_steps", "mask", "feather", "spread"),
)

_SAME_AS_PARENT: Final = (  # Attributes that a picture shares with the parent it follows
    *("seed", "noise_mix", "width", "height", "num_inference_steps", "scheduler"),
    *("model", "dtype", "determinism", "arithmetic", "start", "strength", "upscaler"),
)


class Value(BaseModel):
    """A frozen pydantic model for data in files: strict types, no unknown keys, no NaN."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ModelRef(Value):
    """A model, identified by its name and by the hash of its files."""

    # `"bundled"`, a hub id, or the name of a local folder or file; never a path
    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    # The hub's commit, or `"local"`
    revision: Annotated[str, StringConstraints(max_length=100)] = "local"
    # SHA-256 over the weight files and configurations, in order of their names
    weights_sha256: Digest


class Lora(Value):
    """A low-rank adaptation of the model, identified by name and hash, with its scale."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    weights_sha256: Digest
    scale: Annotated[float, Field(ge=-4, le=4)] = 1.0


class Upscaler(Value):
    """A network that enlarges pictures, identified by name and hash."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    weights_sha256: Digest


class NoiseShare(Value):
    """Another seed, whose noise is mixed into the noise so far."""

    seed: Seed  # The other seed
    # Of the spherical interpolation: 0 is the noise so far, 1 is the noise of this seed
    weight: Annotated[float, Field(gt=0, le=1)]


class Recipe(Value):
    """All settings that decide a picture; the picture is a function of them."""

    prompt: PromptText  # The prompt that the model is given
    negative_prompt: PromptText
    seed: Seed
    # From 1: the fixed size of an unconditional model may be below MIN_SIZE_PX.
    width: Annotated[int, Field(ge=1, le=MAX_SIZE_PX)]
    height: Annotated[int, Field(ge=1, le=MAX_SIZE_PX)]
    num_inference_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)]
    guidance_scale: Annotated[float, Field(ge=0, le=MAX_GUIDANCE)]
    # The name people know, for example `"DPM++ 2M Karras"` (models/schedulers.py)
    scheduler: Annotated[str, StringConstraints(min_length=1, max_length=60)]
    model: ModelRef
    dtype: DType
    lock_width: LockWidth  # W, the batch size at which the picture is computed
    determinism: Determinism
    loras: tuple[Lora, ...]
    # Mixed into the noise of `seed` in this order
    noise_mix: Annotated[tuple[NoiseShare, ...], Field(max_length=MAX_SHARES)]
    # `"portable-1"` gives the same bits on every machine (docs/portable.md)
    arithmetic: Arithmetic = "native"
    # The prompt as it was typed, if `prompt` is its translation into the model's words
    typed_prompt: PromptText = ""
    # SHA-256 of the start picture's pixels, before any resizing; empty without a start picture
    start: StartDigest = ""
    # Image-to-image's `strength`, as in diffusers; 1 without a start
    strength: Annotated[float, Field(gt=0, le=1)] = 1.0
    # Whether brackets weigh words, as in `(red:1.3)` (core/prompts.py)
    weights: bool = False
    # The network that enlarges the start to this size, without any denoising; prompt and settings
    # are then copied from the recipe of the picture that it enlarges
    upscaler: Upscaler | None = None
    # The recipe of the picture whose denoising trajectory this one follows, in the first steps or
    # outside a region; a parent may have a parent itself
    parent: Recipe | None = None
    # Number of first steps in which the scheduler's inputs and results are the parent's
    held_steps: Annotated[int, Field(ge=0, lt=MAX_STEPS)] = 0
    # SHA-256 of the mask's pixels. The white region is painted, the rest is the parent's;
    # empty if the whole picture is painted.
    mask: StartDigest = ""
    # Width in pixels, inside the region's edge, over which the picture is blended with the parent
    feather: Annotated[int, Field(ge=0, le=MAX_FEATHER_PX)] = 0
    # Share of the steps, from the first on, in which seeded noise moves the prompt's embeddings,
    # so that seeds differ more
    spread: Annotated[float, Field(ge=0, le=MAX_SPREAD)] = 0.0

    @model_validator(mode="after")
    def _check_parent(self) -> Self:
        """Check `parent`, `held_steps`, `mask` and `feather` against one another."""
        if (self.parent is None) == bool(self.held_steps or self.mask):
            raise ValueError("a parent is there exactly where steps are held or a region is")
        if self.feather and not self.mask:
            raise ValueError("a feather needs a region")
        if self.held_steps >= self.num_inference_steps:
            raise ValueError("the last step cannot be held")
        if self.parent is not None and (name := self.unlike(self.parent)):
            raise ValueError(f"its parent has another {name}")
        if len(self.line) > MAX_PARENTS + 1:
            raise ValueError(f"it has more than {MAX_PARENTS} parents")
        return self

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out settings with their default, so that a new setting changes no recipe's id."""
        usual = {name: field.default for name, field in Recipe.model_fields.items()}
        written: dict[str, object] = write(self)
        return {name: value for name, value in written.items() if value != usual[name]}

    @property
    def line(self) -> tuple[Recipe, ...]:
        """The recipe, its parent, the parent's parent, and so on."""
        return (self, *(self.parent.line if self.parent else ()))

    @property
    def kept_pixels(self) -> frozenset[str]:
        """The digests of the starts and masks that this recipe and its parents need."""
        return frozenset(each for one in self.line for each in (one.start, one.mask) if each)

    def unlike(self, parent: Recipe) -> str:
        """Return the first name in `_SAME_AS_PARENT` whose value a parent does not share, or ""."""
        differing = (n for n in _SAME_AS_PARENT if getattr(self, n) != getattr(parent, n))
        return next(differing, "")

    @property
    def is_portable(self) -> bool:
        """Whether the picture has the same bits on every machine."""
        return self.arithmetic != "native"

    @property
    def is_int8(self) -> bool:
        """Whether most weights are stored in 8 bits."""
        return self.dtype.startswith("int8-")

    @property
    def words(self) -> str:
        """The prompt as it was typed."""
        return self.typed_prompt or self.prompt

    @property
    def id(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return digest(self)

    @property
    def batch_key(self) -> str:
        """The attributes that all recipes of a batch must share: all but `_PER_PICTURE`."""
        return self.model_dump_json(exclude=set(_PER_PICTURE))

    def replace(self, **changes: object) -> Recipe:
        """Return a copy with fields changed, validated again; raise `recipe_invalid`."""
        try:
            return Recipe.model_validate(dict(self) | changes)
        except ValidationError as error:
            reason = first_reason(error, whole="recipe")
            raise InputError("recipe_invalid", field="recipe", reason=reason) from error

    def __repr__(self) -> str:
        words = self.words if len(self.words) <= 40 else self.words[:39] + "…"
        return f"Recipe(seed={self.seed}, {self.width}x{self.height}, {words!r})"

    __str__ = __repr__


class Passport(BaseModel):
    """The environment that computed a picture: everything that was measured to change bits.

    Fields that this version does not know are kept: a passport may come from another release.
    `diffusion/environment.py` fills it in; the empty one (`{}`) means that none is known.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    seedgrid: str = ""
    python: str = ""
    torch: str = ""
    diffusers: str = ""
    transformers: str = ""
    device: str = ""
    device_name: str = ""
    driver: str = ""
    cpu_capability: str = ""
    instruction_limits: dict[str, str] = Field(default_factory=dict)
    threads: int = 0
    precision: dict[str, str] = Field(default_factory=dict)
    attention: str = ""
    memory_format: str = ""
    offload: str = ""
    vae_slicing: bool = False
    vae_tiling: bool = False
    determinism: dict[str, str] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return digest(self)


def in_batches(
    items: Iterable[_Item],
    recipe_of: Callable[[_Item], Recipe],
    also: Callable[[_Item], Hashable] = lambda _: None,
) -> list[list[_Item]]:
    """Split items into batches with equal `batch_key` and `also`, at most `lock_width` items each.

    Batches are in the order of each key's first item.
    """
    groups: dict[Hashable, list[_Item]] = {}
    for item in items:
        groups.setdefault((recipe_of(item).batch_key, also(item)), []).append(item)
    widths = ((group, recipe_of(group[0]).lock_width) for group in groups.values())
    return [group[at : at + width] for group, width in widths for at in range(0, len(group), width)]


def describe_mix(recipe: Recipe) -> str:
    """Say how much of which seeds' noise is mixed in; empty when there is none."""
    return " + ".join(f"{share.weight:.0%} of seed {share.seed}" for share in recipe.noise_mix)


def canonical_json(value: BaseModel) -> str:
    """Return JSON that is the same for equal values: sorted keys, no spaces, non-ASCII as it is."""
    data = value.model_dump(mode="json")
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: BaseModel) -> str:
    """Return the SHA-256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def first_reason(error: ValidationError, *, whole: str) -> str:
    """Return the first validation error, with its field's path, else `whole`, in front."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in first["loc"])[:80] or whole
    return f"{path}: {first['msg'].lower()}"
