"""Every mistake a person can make in a study file, found at once and named clearly."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any, get_type_hints

import msgspec

from doe.alias import Generator, parse_blocks, parse_generators
from doe.errors import DoeError, SpecError, nearest
from doe.study import Augment, Factor, Responses, Study

MOST_FACTORS = 16
MOST_RUNS = 1 << 17
RUN_COLUMNS = ("run_id", "run_order", "row", "replicate", "block", "seed", "config")
STATE_COLUMNS = ("state", "reason", "slot", "host", "seconds")
PLACEHOLDERS = ("seed", "run_dir", "device", "threads")
"""What a command may ask for besides the factors' levels."""

Report = Callable[[str], None]


def read_toml(data: bytes, source: str) -> dict[str, Any]:
    """Parse TOML, or raise SpecError saying where it breaks."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8; save the file as UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        problem = f"not TOML: {error}"
    except RecursionError:
        problem = "not TOML: values are nested too deeply"
    except ValueError as error:  # an integer with too many digits
        problem = f"not TOML: {error}"
    raise SpecError(source, [problem])


def checked_study(table: Mapping[str, Any], source: str) -> Study:
    """Build a Study from a parsed TOML table, or raise SpecError with all its mistakes."""
    problems: list[str] = []
    report = problems.append
    plain = {key: v for key, v in table.items() if key not in ("factors", "responses", "augment")}
    factors = _factors(table.get("factors"), report)
    keys_known = not problems
    responses = _section(Responses, table.get("responses"), "responses", report)
    augment = _augments(table.get("augment", []), report)
    values = _fields(Study, plain, "", report, Study.__struct_fields__)
    for name in ("name", "backend"):
        if name not in table:
            report(f"{name}: missing; expected text")
    # What could not be read is replaced by something valid, so that the rest is still checked.
    study = Study(
        **{"name": "study", "backend": "module:function"}
        | values
        | {"factors": factors, "augment": augment}
        | {"responses": responses or Responses(metrics=("metric",))}
    )
    if not study.seeds and 1 <= study.replicates <= MOST_RUNS:
        study = msgspec.structs.replace(study, seeds=tuple(range(1, study.replicates + 1)))
    found = study_problems(study, keys_known)
    if problems or found:
        raise SpecError(source, [*problems, *found])
    return study


def check_study(study: Study, source: str = "the study") -> None:
    """Raise SpecError with everything that is inconsistent within a study's values."""
    if problems := study_problems(study):
        raise SpecError(source, problems)


def study_problems(study: Study, keys_known: bool = True) -> list[str]:
    """Everything that is inconsistent; what refers to factors only if their keys are known."""
    problems: list[str] = []
    report = problems.append
    _check_name(study.name, report)
    _check_factors(study, report)
    _check_responses(study, report)
    _check_replicates(study, report)
    _check_plain(study.settings, "settings", report)
    _check_plain(study.slurm, "slurm", report)
    if keys_known:
        _check_backend(study, report)
        _check_structure(study, report)
    return problems


# Tables to values -------------------------------------------------------------------------------


def _fields(
    kind: type[msgspec.Struct],
    table: Mapping[str, Any],
    where: str,
    report: Report,
    names: Sequence[str],
) -> dict[str, Any]:
    """Convert each known key of a table to its field's type; report every other one."""
    hints = get_type_hints(kind)
    values = {}
    for key, value in table.items():
        path = f"{where}.{key}" if where else key
        if key not in names:
            report(f"{path}: unknown key{nearest(key, names)}; known are {', '.join(names)}")
            continue
        try:
            values[key] = msgspec.convert(value, hints[key])
        except msgspec.ValidationError as error:
            report(f"{path} = {_short(value)}: {_lower_first(str(error))}")
    return values


def _section(
    kind: type[Any], table: object, where: str, report: Report, **given: object
) -> Any | None:
    """Build one struct from a table, or report why not and return None."""
    if table is None:
        report(f"{where}: missing; expected a table [{where}]")
        return None
    if not isinstance(table, dict):
        report(f"{where} = {_short(table)}: expected a table")
        return None
    fields = [name for name in kind.__struct_fields__ if name not in given]
    values = {**_fields(kind, table, where, report, fields), **given}
    missing = [f.name for f in msgspec.structs.fields(kind) if f.required and f.name not in values]
    for name in missing:
        if name not in table:
            report(f"{where}.{name}: missing")
    return None if missing else kind(**values)


def _factors(table: object, report: Report) -> tuple[Factor, ...]:
    if not isinstance(table, dict) or not table:
        report(
            "factors: missing; expected at least one table such as [factors.A] with low and high"
        )
        return ()
    built = [_section(Factor, row, f"factors.{key}", report, key=key) for key, row in table.items()]
    return tuple(factor for factor in built if factor is not None)


def _augments(rows: object, report: Report) -> tuple[Augment, ...]:
    if not isinstance(rows, list):
        report(f"augment = {_short(rows)}: expected an array of tables [[augment]]")
        return ()
    built = [_section(Augment, row, f"augment[{i}]", report) for i, row in enumerate(rows)]
    return tuple(step for step in built if step is not None)


# Values against each other ----------------------------------------------------------------------


def _check_name(name: str, report: Report) -> None:
    plain = name.isprintable() and name == name.strip() and not re.search(r"[/\\]", name)
    if not plain or not name or name[0] in ".-" or len(name) > 100:
        report(
            f"name = {_short(name)}: expected a plain name of 1 to 100 characters; it becomes a "
            "directory, so it holds no slash and starts with neither dot nor dash"
        )


def _check_factors(study: Study, report: Report) -> None:
    if len(study.factors) > MOST_FACTORS:
        report(f"factors: got {len(study.factors)}; expected at most {MOST_FACTORS}")
    taken = {*RUN_COLUMNS, *STATE_COLUMNS}
    coded = {f"{key}_coded" for key in study.keys}
    for factor in study.factors:
        where = f"factors.{factor.key}"
        if not re.fullmatch(r"[A-Za-z]\w*", factor.key, re.ASCII):
            report(f"{where}: a key is one letter, or a word of letters, digits and underscores")
        if factor.key == "I":
            report(f"{where}: I names the mean in alias tables; take another letter")
        if factor.key in taken or factor.key in coded or factor.key in PLACEHOLDERS:
            report(f"{where}: {factor.key!r} is the name of a column or placeholder; rename it")
        for side in ("low", "high"):
            value = getattr(factor, side)
            if isinstance(value, float) and not math.isfinite(value):
                report(f"{where}.{side} = {value}: expected a finite number")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                report(f"{where}.{side} = {_short(value)}: expected a 64-bit integer")
            if isinstance(value, str) and (not value.isprintable() or not value.strip()):
                report(f"{where}.{side} = {_short(value)}: expected visible text")
        if factor.low == factor.high:
            report(
                f"{where}: low and high are both {_short(factor.low)}; expected two distinct levels"
            )


def _check_responses(study: Study, report: Report) -> None:
    responses = study.responses
    if not responses.metrics:
        report("responses.metrics: empty; expected the names of the metrics that a run returns")
    for name in responses.names:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            report(f"responses: {_short(name)} is no name; expected letters, digits, underscores")
    for name, count in Counter(responses.names).items():
        if count > 1:
            report(f"responses: {name!r} stands {count} times; expected each response once")
    reserved = {*RUN_COLUMNS, *STATE_COLUMNS, *(f"{key}_coded" for key in study.keys)}
    for name in sorted({*responses.names}):
        if name in study.keys:
            report(f"responses: {name!r} is also a factor key; rename one of them")
        if name in reserved:
            report(f"responses: {name!r} is the name of a column of the results; rename it")
    metrics = (*responses.metrics, *responses.further)
    for name, parts in responses.averages.items():
        where = f"responses.averages.{name}"
        if not parts:
            report(f"{where}: empty; expected the metrics to average")
        for part in parts:
            if part not in metrics:
                report(f"{where}: {part!r} is no metric{nearest(part, metrics)}")
        if len(set(parts)) < len(parts):
            report(f"{where}: a metric stands twice; expected each once")
    for name in responses.units:
        if name not in responses.names:
            report(f"responses.units.{name}: no such response{nearest(name, responses.names)}")


def _check_replicates(study: Study, report: Report) -> None:
    if study.replicates < 1:
        report(f"replicates = {_short(study.replicates)}: expected at least 1")
    if len(study.seeds) < study.replicates:
        report(
            f"seeds: got {len(study.seeds)} for {_short(study.replicates)} replicates; "
            "expected one per replicate"
        )
    every = [*study.seeds, *(seed for step in study.augment for seed in step.seeds)]
    for seed, count in Counter(every).items():
        if count > 1:
            report(f"seeds: {_short(seed)} stands {count} times; expected distinct seeds")
        if not 0 <= seed < 2**63:
            report(f"seeds: got {_short(seed)}; expected 0 to 2^63 - 1")
    if not -(2**63) <= study.order_seed < 2**63:
        report(f"order_seed = {_short(study.order_seed)}: expected a 64-bit integer")


def _check_backend(study: Study, report: Report) -> None:
    if study.backend == "command":
        if not study.command or not study.command[0]:
            report('command: missing; backend = "command" needs the program and its arguments')
        known = [*study.keys, *PLACEHOLDERS]
        for part in study.command:
            for name in _placeholders(part, report):
                if name not in known:
                    report(
                        f"command: placeholder {{{name}}} is unknown{nearest(name, known)}; "
                        f"known are {', '.join(known)}"
                    )
        return
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", study.backend):
        report(
            f"backend = {_short(study.backend)}: expected package.module:function, or "
            '"command" with a command to run'
        )
    if study.command:
        report('command: given, but backend is not "command"; remove one of the two')


def _placeholders(text: str, report: Report) -> list[str]:
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        report(f"command: {_short(text)}: {error}; write a literal brace as {{{{ or }}}}")
        return []
    names = [name for _, name, _, _ in parts if name is not None]
    if any(spec or conversion for _, name, spec, conversion in parts if name is not None):
        report(f"command: {_short(text)}: expected bare placeholders such as {{seed}}")
        return []
    return names


def _check_plain(value: object, where: str, report: Report) -> None:
    """Settings travel as JSON, so a date or a number that is not finite cannot."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(item, f"{where}.{key}", report)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_plain(item, f"{where}[{i}]", report)
    elif isinstance(value, float) and not math.isfinite(value):
        report(f"{where} = {value}: expected a finite number")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        report(f"{where} = {_short(value)}: expected a 64-bit integer")
    elif not isinstance(value, (bool, int, float, str)):
        report(f"{where} = {_short(value)}: expected text, a number or a boolean; quote dates")


def _check_structure(study: Study, report: Report) -> None:
    """Fraction, blocks and augmentation: what needs valid factor keys to be read."""
    runs = 1 << min(len(study.factors), MOST_FACTORS)
    generators: tuple[Generator, ...] = ()
    try:
        generators = parse_generators(study.fraction, study.keys)
        runs >>= len(generators)
    except DoeError as error:
        report(f"fraction = {_short(study.fraction)}: {error}")
    try:
        blocks = parse_blocks(study.blocks, study.keys, generators)
        if runs < 2 << len(blocks):
            report(f"blocks = {_short(study.blocks)}: expected at least two runs in a block")
    except DoeError as error:
        report(f"blocks = {_short(study.blocks)}: {error}")
    for i, step in enumerate(study.augment):
        if bool(step.seeds) == bool(step.flip):
            report(f"augment[{i}]: expected either seeds (replicates) or flip (a fold-over)")
        for key in step.flip:
            if key not in study.keys:
                report(f"augment[{i}].flip: {key!r} is no factor{nearest(key, study.keys)}")
    if runs * study.replicates > MOST_RUNS:
        report(
            f"the design has {runs} runs a replicate, {_short(study.replicates)} replicates; "
            f"expected at most {MOST_RUNS} runs: take a fraction"
        )


def _short(value: object) -> str:
    try:
        text = repr(value) if not isinstance(value, bool) else str(value).lower()
    except (ValueError, RecursionError):  # an integer of thousands of digits, or deep nesting
        return "a value too large to print"
    return text if len(text) <= 60 else text[:57] + "..."


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
