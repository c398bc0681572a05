"""Run the benchmarks and write RESULTS.md: ``python -m benchmarks [NAME ...]``."""

import importlib
import platform
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
PACKAGES = ("torch", "numpy", "scipy", "pandas", "statsmodels")


def modules() -> list[str]:
    """Name the benchmark modules that are there."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def machine() -> str:
    """Describe processor, memory, system and versions in a line each."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    model = re.search(r"model name\s*:\s*(.+)", text)
    cores = text.count("processor\t:") or "?"
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"- machine: {model[1] if model else platform.machine()}, {cores} cores, "
        f"{platform.system()} {platform.release()}\n"
        f"- versions: Python {platform.python_version()}, {packages}\n"
        f"- date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n"
    )


def measured(name: str) -> str:
    """Run one module and render its part of the results."""
    sections = importlib.import_module(f"benchmarks.{name}").run()
    return f"## {name}\n\n{machine()}\n" + "\n".join(s.markdown() for s in sections)


def parts(text: str) -> dict[str, str]:
    """Split RESULTS.md into the parts of its modules."""
    found = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0][3:]: part.rstrip() + "\n" for part in found}


def main(names: list[str]) -> None:
    """Measure the named modules, or all, and rewrite their parts of RESULTS.md."""
    unknown = sorted(set(names) - set(modules()))
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; expected {', '.join(modules())}")
    there = parts(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or modules():
        there[name] = measured(name)
        print(there[name], flush=True)
        RESULTS.write_text("# Benchmarks\n\n" + "\n".join(there[key] for key in sorted(there)))


if __name__ == "__main__":
    main(sys.argv[1:])
