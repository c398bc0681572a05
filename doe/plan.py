"""Planning: from a study to its directory, once; and from the directory back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from doe.alias import (
    alias_chains,
    best_foldover,
    defining_relation,
    format_generators,
    minimum_aberration,
    parse_blocks,
    parse_generators,
)
from doe.builtin import pit_study
from doe.check import check_study
from doe.design import Design, check_matrix, design_csv, make_design
from doe.errors import DoeError
from doe.power import Layout
from doe.spec import dump_study, load_study
from doe.store import StudyDir, write_atomic
from doe.study import Augment, Study
from doe.terms import term_name

RUNS = Path("runs")
"""Where studies live unless said otherwise."""

Outcome = Literal["created", "unchanged", "completed", "augmented"]


class Plan(NamedTuple):
    """A study with its design, as planned in a directory."""

    directory: Path
    study: Study
    design: Design


def write_plan(study: Study, directory: Path) -> tuple[Plan, Outcome]:
    """Write study.toml and design.csv; an identical plan keeps its words, a different is refused.

    Raises
    ------
    DoeError
        If another study or an edited design is there; says what differs.
    """
    check_study(study)
    files = StudyDir(directory)
    plan = Plan(directory, study, make_design(study))
    if not files.study.exists():
        if files.design.exists():
            raise DoeError(f"{files.design} stands there without study.toml; move it away first")
        check_matrix(study)
        _write(plan)
        return plan, "created"
    planned = load_study(files.study)
    if differences := study_differences(planned, study):
        listing = "\n".join(f"  - {line}" for line in differences)
        raise DoeError(
            f"{directory} holds another plan, which stays as it is:\n{listing}\n"
            "Plan elsewhere with --out, or add runs to this study with --augment."
        )
    with contextlib.suppress(OSError):  # a study that one may only read
        files.study.touch()  # planned last, for `find_study`
    if _complete_design(plan):
        return plan, "completed"
    return plan, "unchanged"


def load_plan(directory: Path) -> Plan:
    """Read a planned study and check that its design is the one that the study asks for."""
    files = StudyDir(directory)
    if not files.study.exists():
        raise DoeError(f"{directory} holds no study.toml; plan a study with `doe plan`")
    study = load_study(files.study)
    plan = Plan(directory, study, make_design(study))
    _complete_design(plan)
    return plan


def planned_studies(runs: Path = RUNS) -> list[Path]:
    """Directories of all studies below runs/, the one planned last at the end."""
    return [file.parent for file in sorted(runs.glob("*/study.toml"), key=_planned_at)]


def _planned_at(file: Path) -> int:
    return file.stat().st_mtime_ns


def find_study(given: Path | None, runs: Path = RUNS) -> Path:
    """The study directory that was named, or the one below runs/ that was planned last."""
    if given is not None:
        return given.parent if given.name == "study.toml" else given
    found = planned_studies(runs)
    if not found:
        raise DoeError(f"no study below {runs}/; plan one with `doe plan`, or name it with --study")
    return found[-1]


def augmented(study: Study, kind: str) -> Study:
    """The study with runs added as new blocks: `kind` is a number of replicates or "foldover"."""
    if kind == "foldover":
        generators = parse_generators(study.fraction, study.keys)
        flip = best_foldover(generators, len(study.factors))
        step = Augment(flip=tuple(term_name(mask, study.keys) for mask in flip))
    elif kind.isdecimal() and int(kind) > 0:
        used = [*study.seeds, *(seed for step in study.augment for seed in step.seeds)]
        step = Augment(seeds=tuple(max(used) + i for i in range(1, int(kind) + 1)))
    else:
        raise DoeError(f"--augment {kind}: expected a number of replicates to add, or foldover")
    return msgspec.structs.replace(study, augment=(*study.augment, step))


def augment_plan(directory: Path, kind: str) -> tuple[Plan, Outcome]:
    """Add replicates or a fold-over to a planned study; what was planned or run stays as it is."""
    old = load_plan(directory)
    study = augmented(old.study, kind)
    check_study(study)
    plan = Plan(directory, study, make_design(study))
    _write(plan)
    return plan, "augmented"


def asked_study(
    given: Study | Path | None,
    preset: str | None = None,
    replicates: int | None = None,
    fraction: str | None = None,
) -> Study:
    """The study that was given, or the built-in one at a preset, with what overrides it."""
    if given is not None and preset is not None:
        raise DoeError(
            "got both a study and a preset; the preset sizes the built-in PIT study, in one of "
            "your own set preset under [settings]"
        )
    if given is None:
        given = pit_study(preset or "paper")
    study = load_study(given) if isinstance(given, Path) else given
    return with_overrides(study, replicates, fraction)


def with_overrides(study: Study, replicates: int | None, fraction: str | None) -> Study:
    """The study with the command line's replicates and fraction; seeds are continued as needed."""
    if replicates is not None:
        seeds = study.seeds[: max(replicates, 0)]
        after = max(study.seeds, default=0)
        more = tuple(after + i for i in range(1, replicates - len(seeds) + 1))
        study = msgspec.structs.replace(study, replicates=replicates, seeds=seeds + more)
    if fraction is not None:
        generators = fraction_generators(fraction, study.keys)
        study = msgspec.structs.replace(study, fraction=generators)
    return study


def fraction_generators(text: str, keys: tuple[str, ...]) -> str:
    """Generators as given, or the minimum-aberration ones for a fraction such as 1/4."""
    if not text.startswith("1/"):
        return format_generators(parse_generators(text, keys), keys)
    try:
        parts = int(text[2:])
    except ValueError:
        parts = 0
    if parts < 1 or parts & (parts - 1):
        raise DoeError(f"fraction {text!r}: expected 1/2, 1/4, 1/8, … or generators like F=ABCDE")
    return format_generators(minimum_aberration(len(keys), parts.bit_length() - 1), keys)


def layout(study: Study, highest: int | None = None) -> Layout:
    """Size of the planned design with a model of all terms up to `highest` factors."""
    generators = parse_generators(study.fraction, study.keys)
    words = parse_blocks(study.blocks, study.keys, generators)
    chains = alias_chains(generators, len(study.factors), highest or len(study.factors))
    confounded = confounded_terms(study)
    terms = sum(not any(term.mask in confounded for term in chain) for chain in chains)
    cells = 1 << (len(study.factors) - len(generators))
    return Layout(cells, study.replicates, 1 << len(words), terms)


def confounded_terms(study: Study) -> frozenset[int]:
    """Terms that cannot be told from differences between blocks within a replicate."""
    generators = parse_generators(study.fraction, study.keys)
    span = {0}
    for word in parse_blocks(study.blocks, study.keys, generators):
        span |= {word ^ other for other in span}
    relation = {0, *(word.mask for word in defining_relation(generators))}
    return frozenset(a ^ b for a in span - {0} for b in relation)


def study_differences(planned: Study, asked: Study) -> list[str]:
    """What two studies disagree about, a line each."""
    old, new = _flat(msgspec.to_builtins(planned)), _flat(msgspec.to_builtins(asked))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            lines.append(f"{key}: planned {old[key]!r}, now absent")
        elif key not in old:
            lines.append(f"{key}: not planned, now {new[key]!r}")
        elif old[key] != new[key] or type(old[key]) is not type(new[key]):
            lines.append(f"{key}: planned {old[key]!r}, now {new[key]!r}")
    return lines


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Leaves of nested tables by their dotted path; factors go by their key, not their place."""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        value = {str(item.get("key", i)): item for i, item in enumerate(value)}
    if isinstance(value, dict):
        leaves: dict[str, Any] = {}
        for key, item in value.items():
            leaves |= _flat(item, f"{path}.{key}" if path else str(key))
        return leaves
    return {path: value}


def _write(plan: Plan) -> None:
    # The study first: a design that is missing or short is completed from it.
    files = StudyDir(plan.directory)
    write_atomic(files.study, dump_study(plan.study))
    write_atomic(files.design, design_csv(plan.design))


def _complete_design(plan: Plan) -> bool:
    """Write design.csv where a kill left it missing or without its last blocks."""
    path = StudyDir(plan.directory).design
    expected = design_csv(plan.design)
    try:
        found = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        found = ""
    except (OSError, UnicodeDecodeError) as error:
        raise DoeError(f"cannot read {path}: {error}") from error
    if found == expected:
        return False
    if expected.startswith(found):
        write_atomic(path, expected)
        return True
    pairs = zip(found.splitlines(), expected.splitlines(), strict=False)
    line = next((i for i, (a, b) in enumerate(pairs, start=1) if a != b), None)
    where = f"from line {line} on" if line else "by lines at its end"
    raise DoeError(
        f"{path} differs from what study.toml plans {where}; it follows from study.toml and must "
        "not be edited. Restore it, or move it away and plan again: no result is touched."
    )
