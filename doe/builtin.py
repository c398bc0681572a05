"""The built-in study: the replicated 2^6 factorial of the paper "Physics-Informed Tracking"."""

from __future__ import annotations

from typing import NamedTuple

from doe.errors import DoeError, nearest
from doe.study import Factor, Responses, Study


class Preset(NamedTuple):
    """What of the study depends on the preset; all else the trainer reads from its name."""

    image_size: int
    replicates: int


PRESETS = {
    "demo": Preset(image_size=32, replicates=2),
    "small": Preset(image_size=56, replicates=4),
    "paper": Preset(image_size=224, replicates=4),
}

FACTORS = (
    ("A", "AELO", "Reconstruction gradients reach the encoder through the landmark heatmaps"),
    ("B", "Noise bottleneck", "Reconstruction gradients reach the encoder through the residual"),
    ("C", "Heatmap supervision", "Focal loss on Gaussian target heatmaps (CenterNet)"),
    ("D", "PILL", "Unsupervised physics loss: landmarks against the physics prediction"),
    ("E", "PILLS", "Supervised physics loss: position, velocity and bounce against the truth"),
    ("F", "Noise", "Static Gaussian background noise, sigma = 1"),
)


def pit_study(preset: str = "paper") -> Study:
    """The PIT study at a preset's image size; responses are named after the heatmap sizes."""
    if preset not in PRESETS:
        raise DoeError(
            f"preset {preset!r} is unknown{nearest(preset, PRESETS)}; "
            f"known are {', '.join(PRESETS)}"
        )
    size, replicates = PRESETS[preset]
    coarse, middle, fine = size // 4, size // 2, size
    scales = (coarse, middle, fine)
    velocities = tuple(f"V{scale}" for scale in scales)
    bounces = tuple(f"bounce{scale}" for scale in scales)
    return Study(
        name=f"pit-{preset}",
        description="Physics-Informed Tracking: six binary factors of training, position errors",
        backend="pit_model.backend:run",
        replicates=replicates,
        seeds=tuple(range(100, 100 + replicates)),
        order_seed=42,
        settings={"preset": preset},
        factors=tuple(
            Factor(key=key, name=name, description=text, low=False, high=True)
            for key, name, text in FACTORS
        ),
        responses=Responses(
            metrics=tuple(f"{method}{scale}" for method in "BHP" for scale in scales),
            further=velocities + bounces,
            averages={
                "enc_avg": tuple(f"{method}{coarse}" for method in "BHP"),
                "dec_avg": tuple(f"{method}{s}" for method in "BHP" for s in (middle, fine)),
            },
            goal="min",
            unit="px",
            units=dict.fromkeys(velocities, "px/frame") | dict.fromkeys(bounces, ""),
        ),
    )
