"""Texts, numbers and bytes that break things, shared by all kinds of inputs."""

import math
import random

from doe.store.plan import Plan, write_plan
from doe.store.requests import prepare, request_digest
from doe.store.verdicts import Failure, Result, commit
from doe.study.file import parse_study

WORDS = (
    *("", "a", "sgd", "=1+1", "a,b", 'q"x', "a\nb", "a\r\nb", "\r", "é", "e\u0301", "\u202eabc"),
    *("<b>x</b>", "$\\frac$", "\\write18{id}", "%", "a b", " a", "1", "1.0", "on", "true"),
    *("x" * 300, "{lr}", "{", "}", "{{", "a=b", "a:b", "..", "../x", "/", "\u0000", "\x1b[31m"),
    *("nan", "inf", "-inf", "1e400", "0x10", "\u0661", "😀", "\u2028", "a;b", "a|b", "\t", "#"),
    *("'", "`", "[red]x[/red]", "A1B0", "-", "--help", "null", "\uffff", "lr=0.1"),
)
NUMBERS = (
    *(0, 1, 2, -1, 3, 10, 0.1, 0.001, 1e308, -1e308, 5e-324, 1e-300, 2**53, 2**53 + 1, 2**63 - 1),
    *(-(2**63), 10**18, 0.1 + 0.2, -0.0, 1.5, math.nan, math.inf, 100, 64, 7),
)
BYTES = (
    *(b"\0", b"[", b"{", b"null", b"1e999", b"-", b"9" * 400, b"\xff", b'"', b"[[", b"{" * 2000),
    *(b"=", b"\n", b"\r", b"#", b"'''", b".", b"inf", b",", b";"),
)
STUDY = """
name = "s"
backend = "tiny_backends:noop"
replicates = 2
[factors.A]
low = 0
high = 1
[factors.B]
low = 0
high = 1
[responses]
metrics = ["y", "z"]
"""


def word(rng: random.Random) -> str:
    if rng.random() < 0.85:
        return rng.choice(WORDS)
    letters = "aA1,=: é\n\"'\\{}$%_^&<>"
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, 8)))


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The same bytes with a few changed, cut, doubled or replaced."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(changed) + 1)
        match rng.randrange(7):
            case 0:
                changed[i : i + 1] = bytes([rng.randrange(256)])
            case 1:
                del changed[i:]
            case 2:
                del changed[i : i + rng.randint(1, 20)]
            case 3 | 4:
                changed[i:i] = rng.choice(BYTES)
            case 5:
                j = rng.randrange(len(changed) + 1)
                changed[i:i] = changed[j : j + rng.randint(1, 60)]
            case 6:
                changed += rng.randbytes(rng.randint(1, 200))
    return bytes(changed)


VALUES = {
    "plain": lambda rng: 1 + rng.random(),
    "constant": lambda _: 1.0,
    "huge": lambda rng: 1.7e308 * rng.random(),
    "tiny": lambda rng: 5e-324 * rng.randint(0, 3),
    "mixed": lambda rng: rng.choice([1.0, 0.0, -1.0, 1e-300, 1e300, rng.random()]),
    "negative": lambda rng: -rng.random(),
}


def with_verdicts(rng: random.Random, plan: Plan, kind: str = "plain", share: float = 1.0) -> None:
    """Give runs of a plan their verdicts, straight into the store."""
    study = plan.study
    for run in plan.design.runs:
        directory = plan.files.run(run.run_id)
        if rng.random() > share or prepare(directory, study, run):
            continue
        names = (*study.responses.metrics, *study.responses.further)
        origin = {"request": request_digest(study, run), "seed": run.seed, "seconds": rng.random()}
        result = Result("done", {name: VALUES[kind](rng) for name in names}, None, origin)
        if rng.random() < 0.05:
            failure = Failure("exception", word(rng), word(rng), word(rng), (word(rng),))
            result = Result("failed", {}, failure, origin)
        elif rng.random() < 0.05:
            result = Result("diverged", dict.fromkeys(names), Failure("diverged", "nan"), origin)
        commit(directory, result, "fuzz")


def finished(rng: random.Random, directory) -> Plan:
    """A small study that is done, with a log and progress in every run."""
    plan, _ = write_plan(parse_study(STUDY.encode()), directory)
    with_verdicts(rng, plan)
    for run in plan.design.runs:
        place = plan.files.run(run.run_id)
        place.log.write_text("epoch 1\nepoch 2\n")
        place.progress.write_text('{"step":1,"total":2,"metrics":{"y":1.0}}\n')
        place.lease(1).write_text(
            '{"attempt":1,"nonce":"n","host":"h","machine":"m","pid":1,"started":"1"}'
        )
    return plan
