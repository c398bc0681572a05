"""A small network that reads handwritten digits, trained by one of three optimizers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

IMAGES = 600
"""Images used, so that a run takes a moment."""
EPOCHS = 20
MOMENTUM = {"sgd": 0.0, "momentum": 0.9, "adam": 0.9}


def train(lr: float, optimizer: str, augment: bool, seed: int) -> dict[str, float]:
    """Fit the network on half of the images and measure it on the other half."""
    images, labels = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(images))[:IMAGES]
    x, x_test, y, y_test = train_test_split(
        images[chosen] / 16, labels[chosen], test_size=0.5, random_state=seed
    )
    if augment:  # each image once more, moved by a pixel
        moved = np.roll(x.reshape(-1, 8, 8), 1, axis=2).reshape(len(x), -1)
        x, y = np.concatenate([x, moved]), np.concatenate([y, y])
    model = MLPClassifier(
        hidden_layer_sizes=(32,),
        solver="adam" if optimizer == "adam" else "sgd",
        momentum=MOMENTUM[optimizer],
        learning_rate_init=lr,
        batch_size=32,
        max_iter=EPOCHS,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of epochs is meant
        model.fit(x, y)
    loss = log_loss(y_test, model.predict_proba(x_test), labels=range(10))
    return {"accuracy": 100 * float(model.score(x_test, y_test)), "loss": float(loss)}


def run(request) -> Mapping[str, float]:
    """What `doe` calls: the levels are those of study.toml."""
    levels = request.factors
    metrics = train(levels["lr"], levels["optimizer"], levels["augment"], request.seed)
    request.report(1, 1, **metrics)
    return metrics
