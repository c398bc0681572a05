"""A classifier of handwritten digits, as a function for `doe` and as a command of its own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

IMAGES = 600
"""Images used, so that a run takes a moment."""


def train(
    scale: bool, components: int, penalty: float, augment: bool, seed: int
) -> dict[str, float]:
    """Fit a linear classifier on half of the images and measure it on the other half."""
    images, labels = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(images))[:IMAGES]
    x, x_test, y, y_test = train_test_split(
        images[chosen], labels[chosen], test_size=0.5, random_state=seed
    )
    if augment:  # each image once more, moved by a pixel
        moved = np.roll(x.reshape(-1, 8, 8), 1, axis=2).reshape(len(x), -1)
        x, y = np.concatenate([x, moved]), np.concatenate([y, y])
    steps = [StandardScaler()] if scale else []
    steps += [PCA(components, random_state=seed)]
    model = make_pipeline(*steps, LogisticRegression(C=1 / penalty, max_iter=300))
    model.fit(x, y)
    error = 100 * (1 - model.score(x_test, y_test))
    loss = log_loss(y_test, model.predict_proba(x_test), labels=range(10))
    return {"error": float(error), "loss": float(loss)}


def run(request) -> Mapping[str, float]:
    """What `doe` calls: the levels are those of study.toml."""
    levels = request.factors
    metrics = train(
        levels["scale"], levels["components"], levels["penalty"], levels["augment"], request.seed
    )
    request.report(1, 1, **metrics)
    return metrics


def main() -> None:
    """What study-command.toml starts: levels as arguments, metrics as a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=("true", "false"), required=True)
    parser.add_argument("--components", type=int, required=True)
    parser.add_argument("--penalty", type=float, required=True)
    parser.add_argument("--augment", choices=("true", "false"), required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    metrics = train(
        given.scale == "true", given.components, given.penalty, given.augment == "true", given.seed
    )
    (given.out / "metrics.json").write_text(json.dumps(metrics))


if __name__ == "__main__":
    main()
