"""``python -m tests.fuzz --inputs 2000`` is `make fuzz`: no input may end in a traceback or a hang.

Each kind makes so many inputs from a seed and hands each to one command, in this process. An input
that ends in anything but an answer or a message is printed with what makes it again.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.command_line import called
from tests.fuzz import files, options, studies, tables

KINDS = {
    "studies": studies.inputs,
    "files": files.inputs,
    "options": options.inputs,
    "tables": tables.inputs,
}
SECONDS = 30
"""Processor time after which a command counts as hanging."""


class Hang(BaseException):
    """A command took too long."""


def outcome(words: tuple[str, ...], place: Path) -> str:
    """How a command went wrong; an empty text where it did not."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        ended = called(*words, cwd=place)
    except (Hang, Exception):
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if ended.code not in (0, 1, 2, 3) or "Traceback" in ended.stderr:
        return f"exit code {ended.code}\n{ended.stderr}"
    return ""


def fuzz(kind: str, number: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Try so many inputs of a kind; commands called, and how often each mistake was met."""
    signal.signal(signal.SIGPROF, _hang)
    rng, seen, calls = random.Random(f"{kind} {seed}"), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="doe-fuzz-") as directory:
        place = Path(directory)
        for i, (words, what) in enumerate(KINDS[kind](rng, place)):
            if i == number:
                break
            calls[words[0]] += 1
            if wrong := outcome(words, place):
                mistake = signature(wrong)
                seen[mistake] += 1
                if seen[mistake] == 1:
                    told = f"{kind} {seed}/{i}: {words}\n{what[:2000]}\n{wrong[-3000:]}"
                    print(told, flush=True)
    return calls, seen


def _hang(_number: int, _frame: object) -> None:
    raise Hang


def signature(wrong: str) -> str:
    """Where it went wrong in our code, and the kind of error."""
    places = re.findall(r'File ".*?/(doe/[^"]*)", line (\d+)', wrong)
    return f"{places[-1:]} {wrong.strip().splitlines()[-1][:60]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, help="only this; all at once by default")
    given = parser.parse_args()
    if given.kind is None:
        words = [sys.executable, "-m", "tests.fuzz", f"--inputs={given.inputs}"]
        words += [f"--seed={given.seed}"]
        surroundings = os.environ | {"COLUMNS": "80", "OPENBLAS_NUM_THREADS": "1"}
        kinds = [subprocess.Popen([*words, f"--kind={kind}"], env=surroundings) for kind in KINDS]
        return max(kind.wait() for kind in kinds)
    began = time.monotonic()
    calls, seen = fuzz(given.kind, given.inputs, given.seed)
    often = ", ".join(f"{name} {count}" for name, count in calls.most_common())
    seconds = time.monotonic() - began
    print(
        f"{given.kind}: {calls.total()} inputs in {seconds:.0f} s ({often}), {len(seen)} mistakes"
    )
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
