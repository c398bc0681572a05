"""What the command line costs before it does anything."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks import Section, median_ratio, side_by_side

CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import typer, rich'": [sys.executable, "-c", "import typer, rich"],
    "doe --help": [sys.executable, "-c", "from doe.cli import main; main()", "--help"],
}
LIMIT = 2.0


def run() -> list[Section]:
    """Time `doe --help` against importing its two libraries."""

    def call(command: list[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    seconds = side_by_side({n: (lambda c=c: call(c)) for n, c in CASES.items()}, repeats=15)
    floor = seconds["python -c 'import typer, rich'"]
    rows = tuple(
        (name, f"{1000 * statistics.median(times):.0f} ms", f"{median_ratio(times, floor):.2f}")
        for name, times in seconds.items()
    )
    note = f"Aim: `doe --help` at most {LIMIT:g} times the import of typer and rich."
    return [Section("Start of the command line", ("command", "median", "ratio"), rows, note)]
