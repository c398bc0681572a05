"""A run's state on disk: written whole or not at all, read only if intact and of the same run.

A checkpoint is a dictionary of plain values and tensors. Two things go with it: the fingerprint of
what it belongs to, and the state of the random number generators, so that a resumed run draws what
the uninterrupted one would have drawn. On the CPU it ends with the same numbers, bit for bit; GPUs
add up in an order of their own each time, and nothing exact is promised there. The file starts with
the SHA-256 of what follows.
"""

import hashlib
import io
import json
import logging
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pit_model.config import Config
from pit_model.errors import PitError

_LOG = logging.getLogger(__name__)
_DIGEST_BYTES = 32

FORMAT = 1
"""Incremented when the content of a checkpoint changes its meaning."""


def fingerprint(config: Config, seed: int) -> str:
    """Return a short text that differs for any other setting, seed or format.

    The number of epochs is left out where it changes nothing in those that are done, so that a run
    can go on behind its end: with step sizes that do not decay.
    """
    settings = config.as_dict()
    if config.decay == 0:
        del settings["epochs"]
    content = json.dumps({"format": FORMAT, "seed": seed, **settings}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def save(path: Path, state: Mapping[str, Any], mark: str) -> None:
    """Write a state to a temporary file, flush it to disk and rename it into place."""
    content = io.BytesIO()
    torch.save({"fingerprint": mark, "random": random_state(), "state": dict(state)}, content)
    payload = content.getvalue()
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def load(path: Path, mark: str) -> dict[str, Any]:
    """Read a state and set the random number generators to what they were.

    Raises
    ------
    PitError
        If the file is damaged or belongs to another configuration, seed or format.
    """
    data = path.read_bytes()
    payload = data[_DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != data[:_DIGEST_BYTES]:
        raise PitError(f"{path.name} is damaged: its checksum does not fit its content")
    try:
        content = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
        written = content["fingerprint"]
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError) as error:
        raise PitError(f"{path.name} does not contain plain data of a run: {error}") from error
    if written != mark:
        raise PitError(
            f"{path.name} belongs to another run: its fingerprint is {written}, expected {mark}"
        )
    set_random_state(content["random"])
    return dict(content["state"])


def resume(path: Path, mark: str) -> dict[str, Any] | None:
    """Read a state to resume from; None, with a line in the log, if the file is unusable."""
    if not path.exists():
        return None
    try:
        return load(path, mark)
    except PitError as error:
        _LOG.warning("starting from the beginning: %s", error)
        return None


def random_state() -> dict[str, Any]:
    """Return the state of torch's generators, on the CPU and on each CUDA device in use.

    A run on the CPU leaves CUDA alone: asking for its states would initialise every GPU.
    """
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all() if used else []}


def set_random_state(state: Mapping[str, Any]) -> None:
    """Restore torch's generators; CUDA ones only with the same number of devices."""
    torch.set_rng_state(state["cpu"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
