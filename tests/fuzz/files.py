"""Files of a study: bytes and values of verdicts, requests, leases and the plan are changed."""

import hashlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doe.store import verdicts
from tests.fuzz.texts import STUDY, finished, mutated

COMMANDS = (
    *(("status",), ("status", "--json"), ("analyze",), ("analyze", "--json"), ("export",)),
    *(("logs", "000-r1"), ("logs", "001-r2"), ("power",), ("alias",), ("analyze", "--csv")),
)
VALUES = (
    *(None, True, -1, 0, 1, 2**63, 2**64, 10**30, 1.5, 1e308, 5e-324, "", "x", "\u0000", "<b>"),
    *("\x1b[31m", [], [1], {}, {"a": 1}, "2026-01-01T00:00:00", "9999-12-31T23:59:59Z"),
    *("0001-01-01T00:00:00Z", "2026-01-01T00:00:00+23:59", "a" * 5000),
)
EXTRA = (
    *("lease-2.json", "lease-007.json", "lease-\u0663.json", f"lease-{'9' * 200}.json"),
    *("attempt-1.json", f"attempt-{'9' * 200}.json", "result.json.failed-3", "progress.jsonl"),
    *("epochs.csv", ".result.json.x", "result.json.foreign-99999999999999999999", "metrics.json"),
)
CONTENTS = (
    *(b"", b"{}", b"x", b'{"step":1,"total":2,"metrics":{"y":1e400}}\n'),
    *(b'{"step":-5,"total":0}\n{"step":99999999999999999999,"total":1}\n', b"epoch,y\n1,nan\n,,\n"),
)


def inputs(rng: random.Random, place: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """A finished study with one or a few files changed, and a command that reads it."""
    finished(rng, place / "whole")
    (place / "study.toml").write_text(STUDY)
    while True:
        shutil.rmtree(place / "p", ignore_errors=True)
        shutil.copytree(place / "whole", place / "p")
        what = [_change(rng, place / "p") for _ in range(rng.choice([1, 1, 2, 4]))]
        for words in rng.sample(COMMANDS, 3):
            yield (*words, "--study", "p"), "\n".join(what)
        yield ("plan", "study.toml", "--out", "p"), "\n".join(what)


def _change(rng: random.Random, study: Path) -> str:
    run = rng.choice(sorted(path for path in study.iterdir() if path.is_dir()))
    match rng.randrange(6):
        case 0:
            file = run / rng.choice(["result.json", "request.json", "lease.json", "log.txt"])
            data = mutated(rng, file.read_bytes() if file.is_file() else b"")
        case 1 | 2:
            file = run / rng.choice(["result.json", "result.json", "request.json", "lease.json"])
            data = _other_values(rng, file)
        case 3:
            file, data = run / rng.choice(EXTRA), rng.choice(CONTENTS)
            if rng.random() < 0.5:
                (run / "result.json").unlink(missing_ok=True)
        case 4:
            (run / "result.json").unlink(missing_ok=True)
            file = run / "lease.json"
            data = _other_values(rng, file)
        case _:
            file = study / rng.choice(["design.csv", "study.toml"])
            data = mutated(rng, file.read_bytes())
    file.write_bytes(data)
    return f"{file.relative_to(study)}: {data[:1500]!r}"


def _other_values(rng: random.Random, file: Path) -> bytes:
    """A JSON file with other values in it; a verdict is signed again."""
    try:
        table = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return mutated(rng, b"{}")
    if not isinstance(table, dict):
        return b"[]"
    for _ in range(rng.randint(1, 3)):
        part, key = rng.choice(list(_places(table)) or [(table, "zz")])
        if rng.random() < 0.8:
            part[key] = rng.choice(VALUES)
        else:
            part.pop(key, None)
    table.pop("checksum", None)
    text = json.dumps(table, indent=1).encode()
    if file.name != "result.json":
        return text
    body = text.removesuffix(b"\n}")
    return body + verdicts._SEAL % hashlib.sha256(body).hexdigest().encode()


def _places(table: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for key, value in table.items():
        yield table, key
        if isinstance(value, dict):
            yield from _places(value)
