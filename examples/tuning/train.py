"""A network of one hidden layer on handwritten digits: six numbers to tune, error and time.

Everything is NumPy but the images, which come with scikit-learn. `seconds` is the processor time of
the training, which other work on the machine changes little.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from sklearn.datasets import load_digits

TRAINED = 900
"""Images to train on; the other 897 are for the test."""
NAMES = ("lr", "batch", "width", "momentum", "decay", "noise")


def images() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the images to train on and those to test with, the same for every seed."""
    x, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, labels = x[order] / 16.0 - 0.3, labels[order]
    return x[:TRAINED], labels[:TRAINED], x[TRAINED:], labels[TRAINED:]


def train(
    lr: float,
    momentum: float,
    batch: int,
    width: int,
    decay: float,
    noise: float,
    seed: int,
    epochs: int = 40,
) -> dict[str, float]:
    """Train by gradient descent with momentum and weight decay; return the error and the time."""
    x, labels, x_test, labels_test = images()
    rng = np.random.default_rng(seed)
    w1 = rng.normal(size=(64, width)) * np.sqrt(2 / 64)
    w2 = rng.normal(size=(width, 10)) * np.sqrt(1 / width)
    weights = [w1, np.zeros(width), w2, np.zeros(10)]
    speed = [np.zeros_like(part) for part in weights]
    began = time.process_time()
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), batch):
            own = order[start : start + batch]
            noisy = x[own] + noise * rng.normal(size=(len(own), 64))
            for part, change, slope in zip(
                weights, speed, gradients(weights, noisy, labels[own]), strict=True
            ):
                change *= momentum
                change -= lr * (slope + decay * part)
                part += change
    seconds = time.process_time() - began
    hidden = np.maximum(x_test @ weights[0] + weights[1], 0.0)
    guess = (hidden @ weights[2] + weights[3]).argmax(axis=1)
    return {"error": 100.0 * float((guess != labels_test).mean()), "seconds": seconds}


def gradients(weights: list[np.ndarray], x: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Gradients of the mean cross-entropy."""
    w1, b1, w2, b2 = weights
    hidden = np.maximum(x @ w1 + b1, 0.0)
    scores = hidden @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    share = np.exp(scores)
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(x)), labels] -= 1.0
    share /= len(x)
    back = (share @ w2.T) * (hidden > 0)
    return [x.T @ back, back.sum(axis=0), hidden.T @ share, share.sum(axis=0)]


def run(request) -> Mapping[str, float]:
    """What `doe` calls: six factors in study.toml, one that sets all six in confirm.toml."""
    given = {**request.settings, **request.factors}
    return train(**{name: given[name] for name in NAMES}, seed=request.seed)
