"""Numbers in the binary files of TensorBoard and W&B, read without either package.

Both are sequences of records in the wire format of Protocol Buffers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

BLOCK_BYTES, HEADER_BYTES = 32768, 7
"""W&B writes the log format of LevelDB: blocks of records with a header each."""
FULL, FIRST, LAST = 1, 2, 4
FLOATS = {1: "f", 2: "d", 3: "i", 9: "q", 19: "e"}
"""Type of a TensorFlow tensor -> that of its bytes."""

Curves = dict[str, list[tuple[float, Any]]]
"""Name -> its values, each with its step."""


def tensorboard_curves(paths: Sequence[Path]) -> Curves:
    """The scalars of event files, by tag."""
    curves: Curves = {}
    for path in paths:
        for event in _tensorflow_records(path.read_bytes()):
            parts = dict(_fields(event))
            for _, value in _fields(parts.get(5, b"")):
                entry = dict(_fields(value))
                number = _scalar(entry)
                if number is not None and 1 in entry:
                    step = _signed(parts.get(2, 0))
                    curves.setdefault(entry[1].decode(errors="replace"), []).append((step, number))
    return curves


def wandb_curves(path: Path) -> Curves:
    """What a run of W&B logged, and its summary where nothing was logged under that name."""
    curves: Curves = {}
    summary: Curves = {}
    for record in _leveldb_records(path.read_bytes()):
        for kind, body in _fields(record):
            if kind not in (2, 3):  # history, summary
                continue
            items = dict(_items(body))
            step = float(items.get("_step", len(curves)))
            for name, value in items.items():
                if not name.startswith("_") and isinstance(value, (int, float, str)):
                    (curves if kind == 2 else summary).setdefault(name, []).append((step, value))
    return summary | curves


def _items(body: bytes) -> Iterator[tuple[str, Any]]:
    """Names and values of a record of history or of a summary."""
    for number, item in _fields(body):
        parts = list(_fields(item)) if number == 1 and isinstance(item, bytes) else []
        names = [value.decode() for key, value in parts if key in (1, 2)]
        for key, value in parts:
            if key == 16 and names:
                yield "/".join(filter(None, names)), json.loads(value)


def _scalar(entry: dict[int, Any]) -> float | None:
    """The number of a summary: plain, or a tensor of one element."""
    if 2 in entry:
        return float(struct.unpack("<f", entry[2])[0])
    tensor = dict(_fields(entry.get(8, b"")))
    kind = FLOATS.get(tensor.get(1, 0))
    if kind is None:
        return None
    for field, form in ((4, kind), (5, "f"), (6, "d")):
        raw = tensor.get(field, b"")
        if len(raw) == struct.calcsize(form):
            return float(struct.unpack(f"<{form}", raw)[0])
    return None


# Records ----------------------------------------------------------------------------------------


def _tensorflow_records(data: bytes) -> Iterator[bytes]:
    """Records with their length before them; one that is being written is left out."""
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if at + 16 + length > len(data):
            return
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def _leveldb_records(data: bytes) -> Iterator[bytes]:
    at, record = HEADER_BYTES, b""  # the file's own header is as long
    while at + HEADER_BYTES <= len(data):
        left = BLOCK_BYTES - at % BLOCK_BYTES
        if left < HEADER_BYTES:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        part = data[at + HEADER_BYTES : at + HEADER_BYTES + length]
        at += HEADER_BYTES + length
        record = part if kind in (FULL, FIRST) else record + part
        if kind in (FULL, LAST):
            yield record


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of the fields of a message: integers, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        length = {1: 8, 5: 4}.get(wire)
        if length is None:
            if wire != 2:
                return  # no message
            length, at = _varint(data, at)
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, at


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
