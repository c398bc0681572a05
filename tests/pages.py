"""Run the commands of documentation pages; `python -m tests.pages PAGE…` rewrites what they print.

A block of type `console` holds commands after `$ ` and what they print; "..." stands for any text.
A block with `title="NAME"` is a file. `<!-- uses: runs/NAME -->` puts a copy of that directory
of the project beside them.
"""

import doctest
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
ROOT = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
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
        same = doctest.OutputChecker().check_output(self.expected, self.printed, FLAGS)
        return self.code == 0 and (same or not self.expected)


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
        for command in commands:
            print(f"{'ok' if command.as_said else 'new':4} {command.line} (exit {command.code})")
        page.write_text(rewritten(text, commands), encoding="utf-8")


if __name__ == "__main__":
    main()
