"""Study files: made of odd parts, planned, filled with odd verdicts and read."""

import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doe.errors import DoeError
from doe.store.plan import load_plan
from tests.fuzz.texts import NUMBERS, VALUES, mutated, with_verdicts, word

KEYS = (
    *("A", "B", "C", "D", "lr", "opt", "a1", "x_y", "seed", "run_id", "state", "replicate", "I"),
    *("E", "pi", "nan", "inf", "block", "config", "True", "row", "y", "device", "run_dir", "N"),
)
READING = (
    *(("status",), ("status", "--json"), ("alias",), ("power",), ("export",), ("analyze",)),
    *(("analyze", "--json"), ("analyze", "--csv", "-r", "all"), ("analyze", "--latex")),
)
CHANGING = (("plan", "--augment", "1"), ("plan", "--confirm", "2"), ("plan", "study.toml"))


def inputs(rng: random.Random, place: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """A file is planned; where that succeeds, two of the commands that read it follow."""
    while True:
        data = "\n".join(f"{_key(k)} = {toml(v)}" for k, v in study(rng).items()).encode()
        if rng.random() < 0.1:
            data = mutated(rng, data)
        (place / "study.toml").write_bytes(data)
        shutil.rmtree(place / "p", ignore_errors=True)
        what = data.decode(errors="replace")
        yield ("plan", "study.toml", "--out", "p"), what
        try:
            plan = load_plan(place / "p")
        except DoeError:
            continue
        if len(plan.design.runs) > 200:
            continue
        kind = rng.choice(list(VALUES))
        with_verdicts(rng, plan, kind, rng.choice([0.0, 0.6, 1.0, 1.0]))
        for words in (rng.choice(READING), rng.choice(READING)):
            yield (*words, "--study", "p"), f"{kind}\n{what}"
        yield (*rng.choice(CHANGING), "--out", "p"), f"{kind}\n{what}"


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case int() | float():
            return repr(value)
        case str():
            escaped = (
                f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c
                for c in value.replace("\\", "\\\\").replace('"', '\\"')
            )
            return f'"{"".join(escaped)}"'
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{toml(str(k))} = {toml(v)}' for k, v in value.items())}}}"
    raise TypeError(value)


def _key(text: str) -> str:
    return text if text.isidentifier() and text.isascii() else toml(text)


def _level(rng: random.Random) -> Any:
    kinds = (rng.choice(NUMBERS), rng.random() < 0.5, rng.choice(["a", "sgd"]), word(rng))
    return rng.choice(kinds)


def _factor(rng: random.Random, sane: bool) -> dict[str, Any]:
    factor: dict[str, Any] = rng.choice(
        [
            {"low": 0, "high": 1},
            {"low": "a", "high": "b"},
            {"levels": rng.choice([[1, 2, 3], [0.1, 0.01], ["a", "b", "c"], [1, 2, 4, 8]])},
        ]
        if sane
        else [
            {"low": _level(rng), "high": _level(rng)},
            {"levels": [_level(rng) for _ in range(rng.randint(0, 5))]},
            {"levels": {word(rng): {word(rng): _level(rng)} for _ in range(rng.randint(0, 3))}},
        ]
    )
    for key in ("name", "description"):
        if rng.random() < 0.2:
            factor[key] = word(rng)
    if rng.random() < 0.2:
        factor["scale"] = rng.choice(["log", "linear", "x"])
    if rng.random() < 0.1:
        factor["role"] = rng.choice(["choice", "condition", "x"])
    return factor


def study(rng: random.Random) -> dict[str, Any]:
    """A study file as a table, mostly sane, with some of its parts odd."""
    number = rng.choice([1, 2, 2, 3, 3, 4, 5]) if rng.random() < 0.97 else rng.choice([0, 12, 17])
    keys = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:number])
    if rng.random() < 0.3:
        keys = rng.sample(KEYS, min(number, len(KEYS)))
    sane = rng.random() < 0.8
    metrics = list(dict.fromkeys(rng.choice(["y", "z", "loss"]) for _ in range(rng.randint(1, 3))))
    table: dict[str, Any] = {
        "name": "f" if rng.random() < 0.9 else word(rng),
        "backend": "tiny_backends:noop" if rng.random() < 0.9 else word(rng),
        "replicates": rng.choice([1, 2, 2, 3]),
        "factors": {key: _factor(rng, sane) for key in keys},
        "responses": {"metrics": metrics} | _some(rng, _response_parts(rng, metrics)),
    }
    table |= _some(rng, _parts(rng))
    if rng.random() < 0.05:
        table[rng.choice(list(table))] = rng.choice([1, "x", [], {}, True, 1.5, [[]]])
    return table


def _some(rng: random.Random, parts: dict[str, Any]) -> dict[str, Any]:
    odd = rng.choice([0.02, 0.1])
    return {key: value for key, value in parts.items() if rng.random() < odd}


def _response_parts(rng: random.Random, metrics: list[str]) -> dict[str, Any]:
    one = rng.choice(metrics)
    return {
        "further": [word(rng)],
        "averages": {rng.choice(["avg", word(rng)]): [one, rng.choice(metrics)]},
        "goal": rng.choice(["min", "max", "x"]),
        "unit": word(rng),
        "units": {one: word(rng)},
        "scale": rng.choice(["auto", "log", "raw"]),
        "matters": {one: rng.choice(NUMBERS)},
        "goals": {one: rng.choice(["min", "max"])},
    }


def _parts(rng: random.Random) -> dict[str, Any]:
    fractions = ["1/2", "1/3", "C=AB", "D=-ABC", "C=AB, D=AB", "1/0", "1/1000000000", "A=A", "="]
    return {
        "replicates": rng.choice([0, -1, 10**6, 2**63 - 1]),
        "seeds": rng.choice([[1, 2], [1, 1], [2**63 - 1, 2], {"a": [1, 2], "b": [3]}, {}]),
        "order_seed": rng.choice([0, -1, 2**63 - 1]),
        "fraction": rng.choice([*fractions, word(rng)]),
        "exclude": [rng.choice(["A=0, B=1", "A=1", "Z=1", "A", "=", word(rng)])],
        "centre": rng.choice([0, 1, 2, -1, 10**7]),
        "blocks": rng.choice(["ABC", "AB", "A", "AB, CD", "Z", word(rng)]),
        "threads": rng.choice([1, 2, 0, 10**9]),
        "settings": {word(rng): rng.choice([_level(rng), [1, [2]], {"a": {"b": word(rng)}}])},
        "augment": [rng.choice([{"seeds": [5]}, {"seeds": [1]}, {"flip": ["A"]}, {"part": 2}, {}])],
        "stopping": {"max_replicates": rng.choice([3, 0, 10**9]), "terms": ["A", word(rng)]},
        "report": rng.choice([{"split": "A"}, {"drop": [word(rng)]}, {"prefix": word(rng)}]),
        "description": word(rng),
        "command": rng.choice([word(rng), ["python", "{A}"], "python {A} {B"]),
        "cwd": rng.choice([".", "{run_dir}", word(rng)]),
        "metrics": {"file": word(rng), "keys": {word(rng): word(rng)}},
        "progress": {"pattern": rng.choice(["(?P<step>\\d+)", "(", word(rng)])},
        "local": rng.choice([{"cpu": 2}, {"cpu": "x"}, {word(rng): word(rng)}]),
        "design": {"kind": rng.choice(["surface", "screening", "optimal", word(rng)])},
        word(rng) or "zz": _level(rng),
    }
