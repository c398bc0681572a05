"""The runs: a small language model on the tokens that the stage has left."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

BATCH = 256


def windows(ids: np.ndarray, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Each token with the ones before it; zeros before the first. Shapes (n, context), (n,)."""
    padded = np.concatenate([np.zeros(context, dtype=np.int64), ids])
    before = np.lib.stride_tricks.sliding_window_view(padded, context)[:-1]
    return torch.from_numpy(before.copy()), torch.from_numpy(ids)


def run(request) -> dict[str, float]:
    """What `doe` calls: the tokens come from the stage, so vocab and words are not read here."""
    levels, stage = request.factors, request.stages["tokens"]
    context, width = levels["context"], levels["width"]
    torch.manual_seed(request.seed)
    x, y = windows(np.load(stage / "train.npy"), context)
    x_test, y_test = windows(np.load(stage / "test.npy"), context)
    size = int(max(x.max(), y.max(), x_test.max(), y_test.max())) + 1
    model = nn.Sequential(
        nn.Embedding(size, 24),
        nn.Flatten(),
        nn.Linear(24 * context, width),
        nn.Tanh(),
        nn.Linear(width, size),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=levels["lr"])
    steps = request.settings["steps"]
    for step in range(1, steps + 1):
        chosen = torch.randint(len(y), (BATCH,))
        loss = nn.functional.cross_entropy(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            request.report(step, steps, loss=loss.item())
    with torch.no_grad():
        nats = nn.functional.cross_entropy(model(x_test), y_test, reduction="sum").item()
    characters = int((stage / "characters.txt").read_text())
    return {"bits": nats / math.log(2) / characters}
