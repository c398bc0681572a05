"""Run the commands of documentation pages; `python -m tests.pages PAGE…` rewrites what they print.

A block of type `console` holds commands after `$ ` and what they print; "..." stands for any text.
A block with `title="NAME"` is a file. `<!-- uses: runs/NAME -->` puts a copy of that directory
of the project beside them. `<!-- keeps: PATH as FILE -->` copies what they made into the project.
"""

import doctest
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r'^( *)```(\w+)(?: title="([^"]+)")?\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)
USES = re.compile(r"^<!-- uses: (\S+) -->$", re.MULTILINE)
KEEPS = re.compile(r"^<!-- keeps: (\S+) as (\S+) -->$", re.MULTILINE)
ROOT = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"[-−+]?\b\d+(?:\.\d+)?(?:e[-+]?\d+)?")
DURATION = re.compile(r"(?:\b\d+(?:\.\d+)? (?:ms|s|min|h)\b *)+")
BARS = re.compile(r"[\u2580-\u259f│─]+")
CLOSE = 0.05
"""Share of a number in which a training's result may differ between processors."""
SMALL = 0.005
"""Difference that is left to them of any number."""
COMMAND_SECONDS = 600.0


class Command(NamedTuple):
    """A command of a page: its line, what the page says it prints, and what it did."""

    line: str
    expected: str
    printed: str
    code: int

    @property
    def as_said(self) -> bool:
        """Whether it succeeded and printed what the page says."""
        return self.code == 0 and (not self.expected or alike(self.expected, self.printed))


def alike(expected: str, printed: str) -> bool:
    """Whether texts agree but for blanks, bars, durations and the last digits of numbers.

    Processors add in different orders, and a training enlarges differences of the last digit.
    """
    expected, printed = (
        DURATION.sub("some time ", BARS.sub(" ", text)) for text in (expected, printed)
    )
    texts = [NUMBER.sub("0", text) for text in (expected, printed)]
    if not doctest.OutputChecker().check_output(*texts, FLAGS):
        return False
    if "..." in expected:  # which numbers belong together is not known
        return True
    numbers = [[float(n.replace("−", "-")) for n in NUMBER.findall(t)] for t in (expected, printed)]
    return all(
        math.isclose(a, b, rel_tol=CLOSE, abs_tol=SMALL) for a, b in zip(*numbers, strict=True)
    )


def run_page(text: str, directory: Path) -> list[Command]:
    """Write the page's files and run its commands in their order."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    for used in USES.findall(text):
        shutil.copytree(ROOT / used, directory / used)
    commands = []
    for indent, kind, name, block in BLOCK.findall(text):
        body = re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)
        if name:
            (directory / name).write_text(body, encoding="utf-8")
        elif kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, expected = part.partition("\n")
                ended = subprocess.run(
                    ["bash", "-c", line],
                    cwd=directory,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=COMMAND_SECONDS,
                    check=False,
                )
                printed = re.sub(r" +$", "", ended.stdout, flags=re.MULTILINE)
                commands.append(Command(line, expected, printed, ended.returncode))
    return commands


def rewritten(text: str, commands: list[Command]) -> str:
    """Return the page with what its commands printed, where it no longer agrees."""
    for command in commands:
        if not command.as_said:
            old = f"$ {command.line}\n{command.expected}"
            text = text.replace(old, f"$ {command.line}\n{command.printed}", 1)
    return text


def main() -> None:
    for name in sys.argv[1:]:
        page = Path(name)
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as directory:
            commands = run_page(text, Path(directory))
            for made, kept in KEEPS.findall(text):
                shutil.copyfile(Path(directory) / made, ROOT / kept)
        for command in commands:
            print(f"{'ok' if command.as_said else 'new':4} {command.line} (exit {command.code})")
        page.write_text(rewritten(text, commands), encoding="utf-8")


if __name__ == "__main__":
    main()
