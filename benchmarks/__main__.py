"""Run the benchmarks and write RESULTS.md."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from benchmarks import Section

MODULES = ("startup", "analysis", "runner", "train")
PACKAGES = ("torch", "numpy", "scipy", "pandas", "statsmodels", "joblib")


def machine() -> str:
    """Processor, cores, Python and package versions in one paragraph."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}; {versions}."


def markdown(section: Section) -> str:
    """One section as a Markdown table."""
    lines = [f"## {section.title}", ""]
    lines.append("| " + " | ".join(section.columns) + " |")
    lines.append("|" + " --- |" * len(section.columns))
    lines += ["| " + " | ".join(row) + " |" for row in section.rows]
    lines += ["", *section.notes] if section.notes else []
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all of them and write RESULTS.md."""
    texts = []
    for name in names or MODULES:
        print(f"# {name}", file=sys.stderr, flush=True)
        for section in importlib.import_module(f"benchmarks.{name}").run():
            texts.append(markdown(section))
            print(texts[-1], flush=True)
    if names:
        return
    head = (
        "# Benchmark results\n\nWritten by `make bench`: ratios measured side by side in "
        f"one run.\n\n{datetime.date.today()}: {machine()}\n"
    )
    path = Path(__file__).parent / "RESULTS.md"
    path.write_text("\n".join([head, *texts]), encoding="utf-8")
    print(f"Wrote {path.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main(sys.argv[1:])
