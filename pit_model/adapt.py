"""Fine-tune a network on one clip whose own arcs of flight are its labels.

Where arcs confirm most of what the network sees, their fit says where the ball is in every frame
that they pass through, those included where the network missed it. The heatmap loss (C) and the
supervised physics loss (E) on these positions adapt the network; better detections give better
arcs, so it is done twice.
"""

import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from pit_model.config import Config
from pit_model.dataset import Batch
from pit_model.losses import total_loss, window_truth
from pit_model.network import Network
from pit_model.predict import predict, wanted_in_training
from pit_model.regime import network_input, resize
from pit_model.track import Track, Tracker, measure, quiet
from pit_model.trainer import make_optimizer
from pit_model.video import Listener

ROUNDS, STEPS = 2, 100
CHUNK = 8
"""Frames per step."""
CROP = 96
"""Side of the crop in a step, in pixels of the network."""
SURE = 0.3
"""Confidence from which a detection that no arc confirms counts against the arcs."""
TRUST = 0.6
"""Share of such detections and arcs that arcs must confirm to be used as labels."""


class Adaptation(NamedTuple):
    """Result of an adaptation."""

    tracker: Tracker
    """The adapted tracker, or the original one."""
    track: Track
    note: str
    """One sentence on whether and why it was adapted."""


class Labels(NamedTuple):
    """A clip in the network's regime, and the ball's positions according to its arcs."""

    frames: Tensor
    """(T, h, w)."""
    position: Tensor
    """(T, 2), pixels of the network; NaN where no arc passes."""
    velocity: Tensor
    """(T, 2)."""


def adapt(
    tracker: Tracker,
    track: Track,
    scale: float | None = None,
    g: float | None = None,
    progress: Listener = quiet,
) -> Adaptation:
    """Adapt a tracker to the clip of a track, if its arcs are reliable enough.

    `scale` and `g` are what was given for the track.
    """
    before, least = track, track.flights.confirmed.sum()
    share = trust(track)
    if share < TRUST:
        note = (
            f"not adapted: arcs confirm {share:.0%} of the sure detections, expected "
            f"{TRUST:.0%} or more"
        )
        return Adaptation(tracker, track, note)
    adapted = Tracker(copy.deepcopy(tracker.network), tracker.config)
    for number in range(ROUNDS):
        labels = pseudo_labels(track)

        def report(what: str, done: int, total: int, done_before: int = number * STEPS) -> None:
            progress(what, done_before + done, ROUNDS * total)

        fine_tune(adapted.network, tracker.config, labels, seed=number, progress=report)
        track = adapted.track_in(track.regime, track.clip, scale, g)
    counts = f"{track.flights.confirmed.sum()} frames confirmed instead of {least}"
    if track.flights.confirmed.sum() < least or trust(track) < TRUST:
        return Adaptation(tracker, before, f"not adapted: {counts}")
    scatter = f"scatter {track.flights.scatter:.2f} px instead of {before.flights.scatter:.2f}"
    return Adaptation(adapted, track, f"adapted: {counts}, {scatter}")


def trust(track: Track) -> float:
    """Return the share of the frames with an arc or a sure detection in which the two agree."""
    confirmed = track.flights.confirmed
    claimed = (track.flights.arc >= 0) | (track.detections.confidence[:, 0] >= SURE)
    return float(confirmed.sum() / claimed.sum()) if claimed.any() else 0.0


def pseudo_labels(track: Track) -> Labels:
    """Convert a clip and the fit of its arcs to pixels of the network."""
    clip, regime = track.clip, track.regime
    grey = resize(clip.frames.float() / 255, regime.width)
    seen = network_input(grey, regime.dark, measure(clip, regime))
    ratio = np.array([grey.shape[2] / clip.size[0], grey.shape[1] / clip.size[1]])
    position = (track.flights.position + 0.5) * ratio - 0.5
    velocity = track.flights.velocity * ratio
    return Labels(seen, *(torch.from_numpy(x).float() for x in (position, velocity)))


def fine_tune(
    network: Network, config: Config, labels: Labels, seed: int, progress: Listener = quiet
) -> None:
    """Take steps of C and E on crops of chunks in which every frame has a label."""
    config = replace(config, C=True, D=False, E=True, readout="local", physics="free")
    config = replace(config, learning_rate=1e-4, decoder_learning_rate=1e-3, warmup_steps=10)
    length = min(CHUNK, len(labels.frames))
    known = labels.position.isfinite().all(1).double().unfold(0, length, 1).mean(1)
    starts = torch.nonzero(known >= known.max())[:, 0].tolist()
    rng = np.random.default_rng(seed)
    optimizer, wanted = make_optimizer(network, config), wanted_in_training(config)
    network.train()
    for step in range(STEPS):
        batch = _crop(labels, int(rng.choice(starts)), length, rng)
        prediction = predict(network, batch.frames, config, wanted, True)
        loss = total_loss(prediction, window_truth(batch), config, config.epochs).total
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(network.parameters(), config.gradient_norm)
        optimizer.step()
        progress("adapting", step + 1, STEPS)
    network.eval()


def _crop(labels: Labels, first: int, length: int, rng: np.random.Generator) -> Batch:
    """Cut a chunk of `length` frames around the ball in one of them."""
    at = slice(first, first + length)
    frames, position, velocity = (part[at] for part in labels)
    sides = np.minimum(CROP, [frames.shape[2], frames.shape[1]])
    seen = position[position.isfinite().all(1)].numpy()
    ball = seen[rng.integers(len(seen))]
    corner = (ball - rng.uniform(0.1, 0.9, 2) * sides).round().astype(int)
    x, y = corner.clip(0, [frames.shape[2] - sides[0], frames.shape[1] - sides[1]])
    cut = frames[:, y : y + sides[1], x : x + sides[0]]
    moved = position - torch.tensor([x, y])
    outside = ((moved < -0.5) | (moved > torch.from_numpy(sides) - 0.5)).any(1, keepdim=True)
    gone = torch.full_like(moved, torch.nan)
    place, speed = torch.where(outside, gone, moved), torch.where(outside, gone, velocity)
    return Batch(cut[None], place[None], speed[None], torch.zeros(1, length))
