"""Every setting of a run as one frozen value, the presets, and the units derived from them.

Lengths are given in metres and seconds, as in the paper, and become pixels and frames in one place:
`Units`. This module imports neither NumPy nor torch, so that a study can be planned without them.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pit_model.errors import PitError, nearest

FACTORS = ("A", "B", "C", "D", "E", "F")
"""The paper's six factors, in standard order (A varies fastest)."""

CHOICES = {
    "scene": ("paper", "camera"),
    "noise": ("static", "per_frame"),
    "fuse_relu": ("all", "residual"),
    "first_weights": ("dark", "alive", "pytorch"),
    "decoder_losses": ("with_A", "always"),
    "coordinates": ("paper", "aligned"),
    "readout": ("paper", "local"),
    "physics": ("paper", "reflect", "exact", "free"),
}
"""Allowed words of the settings that take a word."""

STUDIES = Path(__file__).parent / "studies"
"""The study files; the [settings] of each are the preset of its name."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of one run; the defaults are the paper's experiment.

    Make it with `Config.from_settings`.
    """

    A: bool = True
    """AELO: reconstruction gradients reach the encoder through the heatmaps."""
    B: bool = True
    """Noise bottleneck: reconstruction gradients reach the encoder through the residual."""
    C: bool = True
    """Focal heatmap supervision, at the scales of `decoder_losses` like D and E."""
    D: bool = False
    """PILL: the unsupervised physics loss."""
    E: bool = True
    """PILLS: the supervised physics loss."""
    F: bool = False
    """Noise: the background has standard deviation `noise_sigma` instead of 0."""

    image_size: int = 224
    """Height and width of a frame in pixels; heatmaps are a quarter, a half and all of it."""
    frames: int = 40
    """Frames of a video; a window is three consecutive ones."""
    train_sequences: int = 100
    """Number of training videos."""
    val_sequences: int = 50
    """Number of validation videos, which choose the epoch of each metric."""
    test_sequences: int = 100
    """Number of test videos, read once at the end, at the chosen epochs."""
    data_seed: int = 42
    """Seed of the initial conditions and of the noise images; set by a study's stream `data`."""

    scene: str = "paper"
    """`paper`: a disc before black or noise, in the world of the next settings; `camera`: each
    video has its own random world, ball and background."""
    domain_m: float = 4.48
    """Side of the physical domain in metres, the same at every image size."""
    dt: float = 0.04
    """Seconds between frames."""
    gravity: float = 9.81
    """Gravity in m/s²."""
    restitution: float = 0.75
    """Speed kept in a collision with a wall."""
    v_max_mps: float = 11.1
    """Largest initial speed along each axis in m/s."""
    radius_px: float = 2.0
    """Radius of the ball in pixels, the same at every image size."""

    noise_sigma: float = 1.0
    """Standard deviation of the background noise with factor F on."""
    noise: str = "static"
    """`static`: one noise image per video (the paper); `per_frame`: a fresh one for each frame."""
    antialias: bool = False
    """Whether the rim of the disc is shaded by coverage instead of cut at pixel centres."""

    fuse_relu: str = "all"
    """Channels of LatentFuse after the ReLU: `all` 21 (the paper) or the 18 `residual` ones."""
    first_weights: str = "dark"
    """`dark`: the encoder's heatmaps start at the floor of their ReLU except for bright spots, the
    decoder's near zero; `alive`: the encoder's start slightly above their floor, brightest where
    features are strongest; `pytorch`: PyTorch's defaults."""
    decoder_losses: str = "with_A"
    """When C, D and E act at the decoder's two scales: `with_A` (the paper) or `always`."""
    target_sigma: float = 1.0
    """Standard deviation of the Gaussian heatmap targets, in heatmap pixels."""
    coordinates: str = "paper"
    """Position of heatmap cell c in the image at stride a: `paper`, its corner a·c; `aligned`, its
    centre a·(c + ½) − ½, where upsampling puts it."""
    readout: str = "paper"
    """Soft positions of the three scales: `paper`, each by its own operator; `local`, each by the
    centroid about its peak."""
    physics: str = "paper"
    """`paper`: Verlet steps that stop at a wall; `reflect`: reflecting steps from an initial
    velocity corrected by g/2; `exact`: least squares of exact flight; `free`: the parabola through
    three landmarks with any gravity, for unknown worlds."""
    physics_window: int = 3
    """Frames in the fit of exact flight: 3, 5, 7 or 9, at most the length of a chunk."""

    reconstruction_weight: float = 1.0
    """Weight of the reconstruction loss in the total."""
    cone_weight: float = 1.0
    """Weight of the cone loss."""
    heatmap_weight: float = 1.0
    """Weight of the heatmap loss (C)."""
    pill_weight: float = 1.0
    """Weight of PILL (D), times its ramp."""
    pills_weight: float = 1.0
    """Weight of PILLS (E), times its ramp."""
    bounce_weight: float = 0.01
    """Weight of the bounce flag within PILLS."""

    epochs: int = 40
    """Passes over the training windows."""
    batch_windows: int = 26
    """Maximum number of windows of three frames in a training step."""
    chunk_windows: int = 13
    """Maximum number of neighbouring windows cut from one video; their frames are encoded once."""
    learning_rate: float = 2e-4
    """Learning rate of Adam for the encoder, its heads and LatentFuse."""
    decoder_learning_rate: float = 2e-3
    """Learning rate of Adam for the decoder."""
    warmup_steps: int = 100
    """Warm-up steps, in which both learning rates grow linearly from zero."""
    decay: float = 0.0
    """Fraction of all steps, at the end of the run, in which both fall linearly to zero."""
    gradient_norm: float = 20.0
    """Norm to which a larger gradient is clipped; 0 for no clipping."""
    pill_ramp: float = 10.0
    """Epochs until the weight of PILL is 1."""
    pills_ramp: float = 20.0
    """Epochs until the weight of PILLS is 1."""
    eval_videos: int = 1
    """Videos per evaluation step."""

    tf32: bool = False
    """CUDA: multiply 32-bit matrices in TF32."""
    bf16: bool = False
    """Run the encoder in bfloat16; the rest stays in 32 bits."""
    compile: bool = False
    """Compile the network with torch.compile."""

    def __post_init__(self) -> None:
        """Check every setting alone and against the others."""
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name))
        for name, words in CHOICES.items():
            value = getattr(self, name)
            _expect(
                value in words, name, value, f"one of {', '.join(words)}{nearest(value, words)}"
            )
        for name in _AT_LEAST:
            value, least = getattr(self, name), _AT_LEAST[name]
            _expect(value >= least, name, value, f"at least {least}")
        for name in _POSITIVE:
            value = getattr(self, name)
            _expect(value > 0, name, value, "a number above 0")
        size = self.image_size
        near = max(16, round(size / 8) * 8)
        _expect(size % 8 == 0, "image_size", size, f"a multiple of 8; {near} is near")
        _expect(
            2 * self.radius_px < size - 1,
            "radius_px",
            self.radius_px,
            f"a ball that fits into {size} pixels",
        )
        window, windows = self.physics_window, (3, 5, 7, 9)
        _expect(window in windows, "physics_window", window, f"one of {windows}")
        for name in ("restitution", "decay"):
            value = getattr(self, name)
            _expect(0 <= value <= 1, name, value, "between 0 and 1")

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], factors: Mapping[str, Any] | None = None
    ) -> "Config":
        """Build a configuration from a preset, the settings over it and the factors over both.

        Parameters
        ----------
        settings
            Any fields of `Config`; `preset` names the study whose settings the others start from.
        factors
            Levels of the factors that a study varies. Any setting may be one, A to F first of all;
            0 and 1 stand for the levels of a switch.
        """
        given = dict(settings)
        for name, level in (factors or {}).items():
            if name in given:
                raise PitError(
                    f"{name!r} is both a factor (level {level!r}) and a setting ({given[name]!r}); "
                    "remove it from the settings"
                )
            given[name] = level
        start = preset_settings(given.pop("preset", "paper"))
        for name in given:
            if name not in _TYPES:
                known = ", ".join(("preset", *_TYPES))
                raise PitError(
                    f"unknown setting {name!r}{nearest(name, _TYPES)}; expected one of {known}"
                )
        return cls(**{name: _coerce(name, value) for name, value in {**start, **given}.items()})

    @property
    def label(self) -> str:
        """The configuration as the paper prints it, for example ``A1B1C1D0E1F0``."""
        return config_label({key: getattr(self, key) for key in FACTORS})

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of this run: factor F switches `noise_sigma`."""
        return self.noise_sigma if self.F else 0.0

    @property
    def tracked_scales(self) -> int:
        """Number of scales, from the coarsest, with losses C, D and E: 1 or 3."""
        return 3 if self.A or self.decoder_losses == "always" else 1

    @property
    def scales(self) -> tuple[int, int, int]:
        """Heatmap sizes, coarse to fine: (S/4, S/2, S); (56, 112, 224) in the paper."""
        return self.image_size // 4, self.image_size // 2, self.image_size

    def as_dict(self) -> dict[str, int | float | bool | str]:
        """Return all settings as plain values, in the order of the fields."""
        return asdict(self)


_TYPES: dict[str, type] = {field.name: field.type for field in fields(Config)}  # type: ignore[misc]
_AT_LEAST = {
    "image_size": 16,
    "frames": 3,
    "train_sequences": 1,
    "val_sequences": 1,
    "test_sequences": 1,
    "data_seed": 0,
    "noise_sigma": 0.0,
    "gravity": 0.0,
    "v_max_mps": 0.0,
    "warmup_steps": 0,
    "gradient_norm": 0.0,
    "reconstruction_weight": 0.0,
    "cone_weight": 0.0,
    "heatmap_weight": 0.0,
    "pill_weight": 0.0,
    "pills_weight": 0.0,
    "bounce_weight": 0.0,
    "epochs": 1,
    "batch_windows": 1,
    "chunk_windows": 1,
    "eval_videos": 1,
}
_POSITIVE = (
    "domain_m",
    "dt",
    "radius_px",
    "target_sigma",
    "learning_rate",
    "decoder_learning_rate",
    "pill_ramp",
    "pills_ramp",
)


def preset_names() -> list[str]:
    """Return the names of the presets, which are those of the study files."""
    return sorted(path.stem for path in STUDIES.glob("*.toml"))


def preset_settings(name: str) -> dict[str, Any]:
    """Return the settings of a preset, read from its study; every other setting keeps its
    default."""
    if name not in preset_names():
        raise PitError(
            f"unknown preset {name!r}{nearest(str(name), preset_names())}; "
            f"expected one of {', '.join(preset_names())}"
        )
    study = tomllib.loads((STUDIES / f"{name}.toml").read_text(encoding="utf-8"))
    return dict(study.get("settings", {}))


@dataclass(frozen=True)
class Units:
    """Conversion of the physics to pixels and frames: ``S = domain / size`` metres per pixel.

    Gravity is ``g·dt²/S`` px/frame², speeds are ``v·dt/S`` px/frame, and the centre of the ball
    moves between the walls ``r`` and ``W − r``. At 224 pixels gravity is 0.7848 and v_max 22.2.
    """

    size: int
    scale: float
    gravity: float
    v_max: float
    radius: float
    low: float
    high: float
    restitution: float

    @classmethod
    def of(cls, config: Config) -> "Units":
        """Convert the settings of a run."""
        scale = config.domain_m / config.image_size
        return cls(
            size=config.image_size,
            scale=scale,
            gravity=config.gravity * config.dt**2 / scale,
            v_max=config.v_max_mps * config.dt / scale,
            radius=config.radius_px,
            low=config.radius_px,
            high=config.image_size - config.radius_px,
            restitution=config.restitution,
        )


def config_label(levels: Mapping[str, bool]) -> str:
    """Print the levels of the six factors, for example ``A1B1C1D0E1F1``."""
    return "".join(f"{key}{int(levels[key])}" for key in FACTORS)


def parse_label(label: str) -> dict[str, bool]:
    """Read ``A1B1C1D0E1F1`` back into levels: each of A to F once, in order, with 0 or 1."""
    pattern = "".join(f"{key}([01])" for key in FACTORS)
    match = re.fullmatch(pattern, label.strip(), flags=re.IGNORECASE)
    if match is None:
        raise PitError(
            f"configuration {label!r} is not one of the 64; expected each of A to F with 0 or 1, "
            "for example A1B1C1D0E1F1"
        )
    return {key: bit == "1" for key, bit in zip(FACTORS, match.groups(), strict=True)}


def _coerce(name: str, value: Any) -> Any:
    """Convert a whole number to float and 0/1 to a boolean where needed; keep everything else."""
    kind = _TYPES[name]
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is float and whole:
        return float(value)
    if kind is bool and whole and value in (0, 1):
        return bool(value)
    return value


def _check_type(name: str, value: Any) -> None:
    """Refuse a value of another type, and numbers that are not finite."""
    kind = _TYPES[name]
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    _expect(type(value) is kind, name, value, words[kind])
    if kind is float:
        _expect(math.isfinite(value), name, value, "a finite number")


def _expect(holds: bool, name: str, value: Any, expected: str) -> None:
    if not holds:
        raise PitError(f"setting {name} = {value!r}; expected {expected}")
