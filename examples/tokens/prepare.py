"""The stage: learn a byte-pair vocabulary on part of a text, and leave both parts as tokens."""

from __future__ import annotations

import re
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np


def text_of(characters: int, seed: int) -> tuple[str, str]:
    """Paragraphs of Python's own manual in random order: a part to train on, a fifth to test."""
    paragraphs = "\n\n".join(topics.values()).split("\n\n")
    order = np.random.default_rng(seed).permutation(len(paragraphs))
    text = "\n".join(paragraphs[i].strip() for i in order)[:characters]
    cut = len(text) * 4 // 5
    return text[:cut], text[cut:]


def split(text: str, words: bool) -> list[list[int]]:
    """The text as bytes: cut before each word, or in one piece."""
    pieces = re.findall(r"\s?\w+|\s?[^\w\s]+|\s+", text) if words else [text]
    return [list(piece.encode()) for piece in pieces]


def merged(ids: np.ndarray, pair: tuple[int, int], token: int) -> np.ndarray:
    """Put one token in the place of each pair, from left to right."""
    hits = np.flatnonzero((ids[:-1] == pair[0]) & (ids[1:] == pair[1]))
    if pair[0] == pair[1]:  # of three in a row, the first two
        keep, last = [], -2
        for hit in hits:
            if hit > last + 1:
                keep.append(hit)
                last = hit
        hits = np.array(keep, dtype=int)
    ids = ids.copy()
    ids[hits] = token
    return np.delete(ids, hits + 1)


def most_frequent(ids: np.ndarray) -> tuple[int, int]:
    """The most frequent pair of neighbours; -1 is a border that no pair crosses."""
    pairs = np.stack([ids[:-1], ids[1:]], axis=1)
    pairs = pairs[(pairs >= 0).all(axis=1)]
    values, counts = np.unique(pairs[:, 0] * 65536 + pairs[:, 1], return_counts=True)
    best = int(values[counts.argmax()])
    return best // 65536, best % 65536


def flat(pieces: list[list[int]], names: dict[int, int]) -> np.ndarray:
    """Pieces in one row with a border between them; a byte that was not seen is token 0."""
    row = [id for piece in pieces for id in (*(names.get(byte, 0) for byte in piece), -1)]
    return np.array(row[:-1], dtype=np.int64)


def tokens(request) -> None:
    """What `doe` calls, once for each vocabulary and replicate."""
    vocab, words = request.factors["vocab"], request.factors["words"]
    parts = [split(t, words) for t in text_of(request.settings["characters"], request.seed)]
    alphabet = sorted({byte for piece in parts[0] for byte in piece})
    names = {byte: i + 1 for i, byte in enumerate(alphabet)}
    train, test = (flat(part, names) for part in parts)
    characters = int(sum(map(len, parts[1])))
    for token in range(len(names) + 1, vocab):
        pair = most_frequent(train)
        train, test = merged(train, pair, token), merged(test, pair, token)
        request.report(token, vocab)
    out = Path(request.run_dir)
    np.save(out / "train.npy", train[train >= 0])
    np.save(out / "test.npy", test[test >= 0])
    (out / "characters.txt").write_text(str(characters))
