"""Options of commands: any value with any option, on a study and on a table."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.texts import STUDY, finished

VALUES = (
    *("", "0", "1", "2", "-1", "3", "0.05", "nan", "inf", "-inf", "1e308", "1e-320", "1e400"),
    *("99999999999999999999", "A", "B", "AB", "A:B", "A,B", "y", "z", "all", "further", "none"),
    *("log", "boxcox", "auto", "x" * 3000, "a\nb", "é", "[red]", "%s", "{}", "../..", "/dev/null"),
    *("/nonexistent/x", "p", "t.csv", "study.toml", "1/2", "1/3", "1/0", "C=AB", "B=A", "=", "A=0"),
    *("A=0,B=1", "lr=", "best", "runner-up", "baseline", "A0B0", "A=1,B=0", "pure", "residual"),
    *("min", "max", "*", "'", '"', "\\", "\u202e", "0x10", "1_0", "\u0663", "True", ",", ",,", ":"),
    *("A:A", "A,A", "-", "--", "0.5", "1.0", "0.999999", "1e-300", "5", "10", "foldover", "."),
    *("3,1.5", "-3", "1,nan", "A^2", "A,B,A:B,A^2", "within:0.5", "300000000", "40h", "24 runs"),
    *("90s", "z<=5", "z <= 5", "y=6..2:2", "y=1..9", "1e308h", "-1 runs", "A=log", "y=logit"),
)
PLANNED = ("--study", "p")
TABLE = ("--table", "t.csv", "--factors", "A,B")
COMMANDS: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    "plan": (
        ((), ("study.toml", "--out", "q"), ("--out", "p")),
        "--preset -n --fraction --augment --model --confirm --response --budget --run-time --sigma "
        "--json!",
    ),
    "alias": ((("-k", "4"), PLANNED), "-k --fraction --order --json!"),
    "power": (
        (("-k", "3"), PLANNED),
        "-k --fraction --response --sigma --effect --effects --matters -n --no-blocks! --order "
        "--alpha --power --json! --sequential! --matters",
    ),
    "suggest": (
        (("--factors", "5", "--budget", "24"), ()),
        "--factors --budget --run-time --json!",
    ),
    "status": ((PLANNED,), "--json!"),
    "logs": ((("000-r1", *PLANNED), PLANNED), "-n"),
    "analyze": (
        (PLANNED, TABLE, TABLE),
        "--low --block -r --goal --transform --order --terms --random-blocks! --drop --ceiling "
        "--robust! --error --alpha --brief! --json! --latex! --csv! --plot! --decimal --scale --of "
        "--block --whole-plot --covariate --optimize! --coding --constraint --desire --matters "
        "--equivalence! --full! --all!",
    ),
    "import": ((("t.csv", *PLANNED),), "--map --matching! --decimal"),
    "export": ((PLANNED,), "--spreadsheet!"),
    "init": ((("--out", "i.toml"),), "--backend --factor --metric --goal --metrics-file -n --name"),
    "run": ((PLANNED,), "--only --replicate --retries --timeout --grace --engine --gpus"),
}
OFTEN = ("plan", "alias", "power", "power", "logs", *("analyze",) * 4, "import", "init", *COMMANDS)


def inputs(rng: random.Random, place: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """A command with a few of its options; what a command has changed is put back."""
    finished(rng, place / "whole")
    rows = [f"{i & 1},{(i >> 1) & 1},{1 + (i * 7 % 11) * 0.3},{i * i % 13}" for i in range(16)]
    while True:
        shutil.rmtree(place / "p", ignore_errors=True)
        shutil.rmtree(place / "q", ignore_errors=True)
        shutil.copytree(place / "whole", place / "p")
        (place / "i.toml").unlink(missing_ok=True)
        (place / "study.toml").write_text(STUDY)
        (place / "t.csv").write_text("A,B,y,z\n" + "\n".join(rows) + "\n")
        for _ in range(20):
            yield _words(rng), ""


def _words(rng: random.Random) -> tuple[str, ...]:
    command = rng.choice(OFTEN)
    starts, known = COMMANDS[command]
    words = [command, *rng.choice(starts)]
    options = known.split()
    for option in rng.sample(options, min(len(options), rng.choice([1, 1, 2, 3]))):
        if option.endswith("!"):
            words.append(option[:-1])
        else:
            words += [option, rng.choice(VALUES)]
    if command == "run":  # nothing is left to do, and no cluster is asked
        words = [word for word in words if word not in ("slurm", "ray")]
    return tuple(words)
