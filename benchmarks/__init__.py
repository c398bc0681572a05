"""Measurements of this project against what it replaces; `make bench` runs them all.

The contract of a benchmark module ``benchmarks/<name>.py``: a function ``run() -> list[Section]``
that measures and returns tables of text. `python -m benchmarks` calls each module that is there, in
alphabetical order, prints the tables and writes them to ``benchmarks/RESULTS.md`` with the machine,
the versions and the date; `python -m benchmarks train` runs one module and replaces its tables
alone. What is compared is run side by side, in turns, within one call.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parents[1] / "docs" / "calibration.md"
"""Page of simulated rates, each table between marks of its name."""
STOPPING = DOCUMENT.with_name("stopping.md")


def write_table(mark: str, table: str, document: Path = DOCUMENT) -> None:
    """Replace one table of a document."""
    before, begin, rest = document.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(f"<!-- end of {mark} -->")
    if not end:
        raise ValueError(f"{document} has no end of the table {mark}")
    document.write_text(f"{before}{begin}{table}\n{end}{after}", "utf-8")


def read_table(mark: str, document: Path = DOCUMENT) -> str:
    """Read one table of a document."""
    rest = document.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")[2]
    return rest.partition(f"<!-- end of {mark} -->")[0]


class Section(NamedTuple):
    """A table of results with a line about how it was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """Render the section for RESULTS.md."""
        lines = [f"### {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines += ["| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def side_by_side(
    cases: Mapping[str, Callable[[], object]],
    repeats: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each case in every repeat, cases taking turns so that noise hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case()
    for _ in range(repeats):
        for name, case in cases.items():
            start = clock()
            case()
            seconds[name].append(clock() - start)
    return seconds


def median_ratio(slow: list[float], fast: list[float]) -> float:
    """Median over the repeats of slow / fast, each pair measured one after the other."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))
