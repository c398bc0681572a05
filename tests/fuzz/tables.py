"""Tables: odd names, levels, numbers, separators and encodings, analysed and imported."""

import random
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.texts import BYTES, finished

NUMBERS = (
    *("1", "2", "0", "-1", "1.5", "1,5", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", ""),
    *(
        "NA",
        "null",
        ">50",
        "<3",
        "≥2",
        "1 000",
        "1,000",
        "1.000,5",
        "0x1",
        "1_0",
        "\u0663",
        "1e400",
    ),
    *("True", "-0", "+1", "1.", "  2 ", "$5", "5%", "2026-01-01", "=1+1"),
)
LEVELS = (
    *(["0", "1"], ["a", "b"], ["a", "b", "c"], ["-1", "1"], ["0.1", "0.01"], ["on", "off"]),
    *(["", "x"], ["1", "1.0"], ["é", "e\u0301"], ["=a", "@b"], ["a b", "a  b"], ["1", "2", "3"]),
    *(["<b>", "$x$"], ["x" * 500, "y"], ["A", "a"], ["nan", "inf"]),
)
NAMES = (
    *("A", "B", "C", "lr", "x y", "", "y", "seed", "state", "run_id", "A:B", "1", "é", "\ufeff"),
    *('a"b', "block", "replicate", "I", "nan", "y ", "Δ", "[b]", "params/lr", "metrics/acc"),
    *("params_lr", "value", "config", "summary", "Name", "ID"),
)
FORMS = ((), ("--json",), ("--csv",), ("--latex",))


def inputs(rng: random.Random, place: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """A table, analysed or, one time in six, imported."""
    finished(rng, place / "p")
    while True:
        names, data = table(rng)
        (place / "t.csv").write_bytes(data)
        words: tuple[str, ...] = ("analyze", "--table", "t.csv", *_options(rng, names))
        if rng.random() < 1 / 6:
            words = ("import", "t.csv", "--study", "p", "--matching")[: rng.choice([4, 5])]
        yield words, repr(data[:1500])


def table(rng: random.Random) -> tuple[list[str], bytes]:
    """The names of the factors, and the bytes of a CSV."""
    number = rng.choice([1, 2, 2, 3])
    names = rng.sample(["A", "B", "C", "lr"], number)
    if rng.random() < 0.2:
        names = [rng.choice(NAMES) for _ in names]
    others = [rng.choice(["y", "y", "y", rng.choice(NAMES)])]
    others += [rng.choice(NAMES)] if rng.random() < 0.2 else []
    levels = [rng.choice(LEVELS[:4] if rng.random() < 0.7 else LEVELS) for _ in names]
    odd = rng.choice([0, 0, 0.05, 0.3, 1])
    rows = [[*names, *others]]
    for i in range(rng.choice([4, 8, 8, 12, 16, 24, 1, 0])):
        row, rest = [], i
        for values in levels:
            row.append(values[rest % len(values)])
            rest //= len(values)
        row += [
            rng.choice(NUMBERS) if rng.random() < odd else f"{rng.gauss(5, 2):.2f}" for _ in others
        ]
        rows.append(row)
    separator, end = rng.choice([",", ",", ";", "\t", "|"]), rng.choice(["\n", "\n", "\r\n", "\r"])
    text = end.join(separator.join(_quoted(cell, separator) for cell in row) for row in rows)
    encoding = rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
    data = bytearray((text + end).encode(encoding, errors="replace"))
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 5)):
            i = rng.randrange(len(data) + 1)
            data[i : i + rng.choice([0, 0, 1, 5])] = rng.choice(BYTES)
    return names, bytes(data)


def _quoted(cell: str, separator: str) -> str:
    quoted = cell.replace('"', '""')
    return f'"{quoted}"' if any(sign in cell for sign in (separator, '"', "\n")) else cell


def _options(rng: random.Random, names: list[str]) -> Iterator[str]:
    if rng.random() < 0.9:
        yield from ("--factors", ",".join(names))
    choices = {
        "-r": ["y", "all"],
        "--transform": ["none", "log", "boxcox", "auto"],
        "--ceiling": ["50", "0", "nan", "-1"],
        "--block": [*names, "z"],
        "--order": ["1", "2"],
        "--decimal": [",", "."],
    }
    for option, values in choices.items():
        if rng.random() < 0.15:
            yield from (option, rng.choice(values))
    yield from rng.choice(FORMS)
