"""The TOML form of a study: read, check, write, compare."""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from doe.errors import AddProblem, DoeError, SpecError, nearest, short
from doe.goals import Desire
from doe.study.checks import MOST_PLANNED_RUNS, several_kinds, study_problems
from doe.study.command import split_command
from doe.study.streams import replicate_streams
from doe.study.values import (
    ENGINES,
    Augment,
    Factor,
    Level,
    MetricsSection,
    ProgressSection,
    ReportSection,
    Responses,
    Stage,
    Stopping,
    Study,
)

RENAMED = ("streams", "engines")
"""Fields written in the file as a table `seeds`, and as a table for each engine."""
COMMAND_SECTIONS = {"metrics": MetricsSection, "progress": ProgressSection}
"""Sections on where a command's numbers are; omitted keys have their defaults."""
FIRST_RULE = {"rule": 1, "futility": 0.0}
"""Defaults of a plan whose [stopping] does not name its rule."""
SECTIONS = (
    *("factors", "responses", "stages", "augment", "report", "stopping", "desirability"),
    *COMMAND_SECTIONS,
)
"""Tables of the file with a form of their own."""

FROZEN = "plan"
"""Table that `doe plan` adds to the study in its directory: format and digest of the plan."""
FORMAT = 2
"""Format of planned studies as written. Format 1 has no table and no digest."""


def load_study(path: Path) -> Study:
    """Read and check a study file.

    Raises
    ------
    DoeError
        If the file cannot be read or holds no valid study; every mistake is listed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DoeError(f"cannot read the study file {path}: {error.strerror}") from error
    return parse_study(data, source=str(path))


def parse_study(data: bytes, source: str = "the study") -> Study:
    """Turn the bytes of a TOML file into a checked Study, or raise SpecError."""
    return checked_study(read_toml(data, source), source)


def planned_study(table: Mapping[str, Any], source: str) -> Study:
    """Build the study of a plan; a command without `cwd` is from an earlier version."""
    study = checked_study(table, source)
    earlier = study.command and "cwd" not in table
    return msgspec.structs.replace(study, cwd="") if earlier else study


def dump_study(study: Study) -> str:
    """Write a study as TOML, every setting explicit, always the same bytes for the same study."""
    table: dict[str, Any] = {
        field: _tuples_to_lists(getattr(study, field))
        for field in study.__struct_fields__
        if field not in (*SECTIONS, "settings", "design", *RENAMED)
        and not _left_out(study, field, ("exclude", "centre", "python", "env"))
    }
    if not study.command or not study.cwd:
        del table["cwd"]
    if study.streams:
        table["seeds"] = _tuples_to_lists(study.streams)
    if study.design:
        table["design"] = study.design
    table["settings"] = study.settings
    table["factors"] = {factor.key: _factor_table(factor) for factor in study.factors}
    table["responses"] = {
        field: _tuples_to_lists(getattr(study.responses, field))
        for field in study.responses.__struct_fields__
        if not _left_out(
            study.responses, field, ("goals", "scale", "scales", "of", "matters", "constraints")
        )
    }
    for name, kind in COMMAND_SECTIONS.items():
        if getattr(study, name) != kind():
            table[name] = msgspec.to_builtins(getattr(study, name))
    if study.report != ReportSection():
        table["report"] = {
            key: value
            for key, value in msgspec.to_builtins(study.report).items()
            if value is not None
        }
    if study.stopping:
        table["stopping"] = msgspec.to_builtins(study.stopping)
    if study.desirability:
        table["desirability"] = {
            name: {
                field: value
                for field, value in msgspec.to_builtins(desire).items()
                if value is not None
            }
            for name, desire in study.desirability.items()
        }
    table |= study.engines
    if study.stages:
        table["stages"] = {name: _stage_table(stage) for name, stage in study.stages.items()}
    if study.augment:
        table["augment"] = [
            {
                field: _tuples_to_lists(getattr(step, field))
                for field in step.__struct_fields__
                if not _left_out(
                    step,
                    field,
                    ("part", "confirm", "response", "axial", "runs", "model", "points"),
                )
            }
            for step in study.augment
        ]
    return msgspec.toml.encode(table).decode()


def frozen_table(digest: str) -> str:
    """Return the table that freezes a plan, the last one of its study file."""
    return f'\n[{FROZEN}]\nformat = {FORMAT}\ndigest = "{digest}"\n'


def _check_format(table: Mapping[str, Any], source: str) -> None:
    """Refuse a plan of a later format before reporting anything else in it."""
    frozen = table.get(FROZEN, {})
    if not isinstance(frozen, dict) or not isinstance(frozen.get("format", 1), int):
        raise SpecError(source, [f"{FROZEN} = {short(frozen)}: expected what `doe plan` wrote"])
    if frozen.get("format", 1) > FORMAT:
        raise DoeError(
            f"{source} was planned by a later version: its format is {frozen['format']}, and this "
            f"version reads formats up to {FORMAT}; upgrade pit-doe"
        )


def _left_out(struct: msgspec.Struct, field: str, optional: Sequence[str]) -> bool:
    """Return whether a field is omitted from the file because it has its default."""
    defaults = {f.name: f.default for f in msgspec.structs.fields(struct)}
    value = getattr(struct, field)
    return field in optional and (not value or value == defaults[field])


def _factor_table(factor: Factor) -> dict[str, Any]:
    """Return a factor as a table: low and high, a list, or tables of settings."""
    table: dict[str, Any] = {"name": factor.name, "description": factor.description}
    if factor.sets:
        table["levels"] = factor.sets
    elif len(factor.levels) == 2 and not factor.listed:
        table |= {"low": factor.low, "high": factor.high}
    else:
        table["levels"] = list(factor.levels)
    optional = {name: getattr(factor, name) for name in ("scale", "role", "hard", "random", "when")}
    return table | {n: value for n, value in optional.items() if not _left_out(factor, n, (n,))}


def _stage_table(stage: Stage) -> dict[str, Any]:
    fields = [field for field in stage.__struct_fields__ if field not in ("engines", "progress")]
    said = {field: _tuples_to_lists(getattr(stage, field)) for field in fields}
    table = {name: value for name, value in said.items() if not _left_out(stage, name, fields)}
    if stage.progress != ProgressSection():
        table["progress"] = msgspec.to_builtins(stage.progress)
    return table | stage.engines


def _tuples_to_lists(value: Any) -> Any:
    """Turn nested tuples into lists, the only sequence in TOML."""
    if isinstance(value, dict):
        return {key: _tuples_to_lists(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_tuples_to_lists(item) for item in value]
    return value


def study_differences(planned: Study, asked: Study) -> list[str]:
    """List the differences between two studies, one line each."""
    old, new = (_flat(_as_written(study)) for study in (planned, asked))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if None in (old.get(key, 0), new.get(key, 0)) and any(
            other.startswith(f"{key}.") for other in old.keys() ^ new.keys()
        ):
            continue  # a section that only one of them has, of which the keys are named
        if key not in new:
            lines.append(f"{key}: planned {old[key]!r}, now absent")
        elif key not in old:
            lines.append(f"{key}: not planned, now {new[key]!r}")
        elif old[key] != new[key] or type(old[key]) is not type(new[key]):
            lines.append(f"{key}: planned {old[key]!r}, now {new[key]!r}")
    return lines


def _as_written(study: Study) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(study)
    written: dict[str, Any] = _tuples_to_lists(fields | fields.pop("engines"))
    return written


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of nested tables by dotted path; factors by key, not by position."""
    if isinstance(value, list | tuple) and value and all(isinstance(v, dict) for v in value):
        value = {str(item.get("key", i)): item for i, item in enumerate(value)}
    if isinstance(value, dict):
        leaves: dict[str, Any] = {}
        for key, item in value.items():
            leaves |= _flat(item, f"{path}.{key}" if path else str(key))
        return leaves
    return {path: value}


def read_toml(data: bytes, source: str) -> dict[str, Any]:
    """Parse TOML, or raise SpecError with the position of the error."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8; save the file as UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        problem = f"not TOML: {error}"
    except RecursionError:
        problem = "not TOML: values are nested too deeply"
    except ValueError as error:  # An integer with too many digits.
        problem = f"not TOML: {error}"
    raise SpecError(source, [problem])


def checked_study(table: Mapping[str, Any], source: str) -> Study:
    """Build a Study from a parsed TOML table, or raise SpecError with all its mistakes."""
    _check_format(table, source)
    problems: list[str] = []
    add = problems.append
    plain = {key: value for key, value in table.items() if key not in (*SECTIONS, FROZEN)}
    if isinstance(plain.get("command"), str):
        plain["command"] = split_command(plain["command"], add)
    streams = _streams(plain, add)
    engines = _engines(plain, add)
    factors = _factors(table.get("factors"), add)
    keys_known = not problems
    responses = _section(Responses, table.get("responses"), "responses", add)
    stages = _stages(table.get("stages", {}), add)
    augment = _augments(table.get("augment", []), add)
    stopping = table.get("stopping")
    if stopping is not None:
        if isinstance(stopping, dict) and "after" in stopping:  # Written by a declaration.
            stopping = FIRST_RULE | stopping
        stopping = _section(Stopping, stopping, "stopping", add)
    layout = _section(ReportSection, table.get("report", {}), "report", add)
    desires = _desires(table.get("desirability", {}), add)
    sources = {
        name: _section(kind, table.get(name, {}), name, add) or kind()
        for name, kind in COMMAND_SECTIONS.items()
    }
    names = [*(name for name in Study.__struct_fields__ if name not in RENAMED), *ENGINES]
    values = _fields(Study, plain, "", add, names)
    for name in ("name", "backend"):
        if name not in table:
            add(f"{name}: missing; expected text")
    # Replace what could not be read with something valid, so that the rest is still checked.
    study = Study(
        **{"name": "study", "backend": "module:function"}
        | values
        | {"factors": factors, "augment": augment, "report": layout or ReportSection()}
        | {"stopping": stopping, "engines": engines, "stages": stages, **streams}
        | {"desirability": desires}
        | sources
        | {"responses": responses or Responses(metrics=("metric",))}
    )
    if not study.seeds and not study.streams and 1 <= study.replicates <= MOST_PLANNED_RUNS:
        study = msgspec.structs.replace(study, seeds=tuple(range(1, study.replicates + 1)))
    problems += study_problems(study, keys_known)
    if problems:
        raise SpecError(source, problems)
    return study


def _streams(plain: dict[str, Any], add: AddProblem) -> dict[str, Any]:
    """Extract a table of several streams from the study file and derive the replicates."""
    if not isinstance(plain.get("seeds"), dict):
        return {}
    table = plain.pop("seeds")
    streams: dict[str, tuple[int, ...]] = {}
    for name, seeds in table.items():
        try:
            streams[name] = msgspec.convert(seeds, tuple[int, ...])
        except msgspec.ValidationError as error:
            add(f"seeds.{name} = {short(seeds)}: {_lower_first(str(error))}")
    if not table:
        add(
            "seeds: empty; expected a list of seeds, or streams such as init and data with one each"
        )
    replicates = plain.get("replicates")
    asked = replicates if type(replicates) is int else None
    if len(streams) < len(table) or not table or (asked is not None and asked < 1):
        return {}
    if asked is not None and asked > MOST_PLANNED_RUNS:
        add(f"replicates = {asked}: expected at most {MOST_PLANNED_RUNS}")
        return {}
    if math.prod(map(len, streams.values())) > MOST_PLANNED_RUNS:
        add("seeds: all combinations of these are too many; list fewer")
        return {}
    whole = replicate_streams(streams, asked, add)
    return {"streams": whole, "replicates": len(next(iter(whole.values())))}


def _engines(
    plain: dict[str, Any], add: AddProblem, section: str = ""
) -> dict[str, dict[str, Any]]:
    """Extract the tables of engines from the study file; each engine checks its own."""
    tables = {name: plain.pop(name) for name in ENGINES if name in plain}
    for name, table in tables.items():
        if not isinstance(table, dict):
            add(f"{section}{name} = {short(table)}: expected a table [{section}{name}]")
    return {name: table for name, table in tables.items() if isinstance(table, dict) and table}


_type_hints = functools.cache(get_type_hints)


def _fields(
    kind: type[msgspec.Struct],
    table: Mapping[str, Any],
    section: str,
    add: AddProblem,
    names: Sequence[str],
) -> dict[str, Any]:
    """Convert each known key of a table to its field's type; report every other one."""
    hints = _type_hints(kind)
    values = {}
    for key, value in table.items():
        path = f"{section}.{key}" if section else key
        if key not in names:
            add(f"{path}: unknown key{nearest(key, names)}; known are {', '.join(names)}")
            continue
        try:
            values[key] = msgspec.convert(value, hints[key])
        except msgspec.ValidationError as error:
            add(f"{path} = {short(value)}: {_expected(str(error), hints[key])}")
    return values


def _expected(message: str, hint: object) -> str:
    """Return msgspec's message about a value; for a wrong word, the words that are allowed."""
    wrong = re.match(r"Invalid enum value '(.*?)'", message)
    words = _choices(hint)
    if wrong is None or not words:
        return _lower_first(message)
    return f"got {wrong[1]!r}{nearest(wrong[1], words)}; expected {' or '.join(words)}"


def _choices(hint: object) -> list[str]:
    """Return the words that a type allows."""
    if get_origin(hint) is Literal:
        return [word for word in get_args(hint) if isinstance(word, str)]
    return [word for part in get_args(hint) for word in _choices(part)]


def _section(kind: type[Any], table: object, path: str, add: AddProblem) -> Any | None:
    """Build one struct from a table, or report why not and return None."""
    if table is None:
        add(f"{path}: missing; expected a table [{path}]")
        return None
    if not isinstance(table, dict):
        add(f"{path} = {short(table)}: expected a table")
        return None
    values = _fields(kind, table, path, add, kind.__struct_fields__)
    missing = [f.name for f in msgspec.structs.fields(kind) if f.required and f.name not in values]
    for name in missing:
        if name not in table:
            add(f"{path}.{name}: missing")
    return None if missing else kind(**values)


def _factors(table: object, add: AddProblem) -> tuple[Factor, ...]:
    if not isinstance(table, dict) or not table:
        add(
            "factors: missing; expected at least one table such as [factors.A] with low and high, "
            "or with levels"
        )
        return ()
    built = [_factor(key, row, f"factors.{key}", add) for key, row in table.items()]
    return tuple(factor for factor in built if factor is not None)


def _factor(key: str, row: object, path: str, add: AddProblem) -> Factor | None:
    """Build a factor from its table with `low` and `high`, or `levels`."""
    if not isinstance(row, dict):
        add(f"{path} = {short(row)}: expected a table")
        return None
    sides = ("low", "high")
    made = ("key", "sets", "listed")
    names = (*sides, *(f for f in Factor.__struct_fields__ if f not in made))
    plain = {name: value for name, value in row.items() if name not in sides}
    sets: dict[str, dict[str, Level]] = {}
    if "levels" in row:
        if twice := [side for side in sides if side in row]:
            add(f"{path}: got levels and {twice[0]}; expected levels, or low and high")
        if isinstance(row["levels"], dict):
            sets = _level_tables(row["levels"], f"{path}.levels", add)
            levels = tuple(sets) or None
        else:
            levels = _fields(Factor, {"levels": row["levels"]}, path, add, names).get("levels")
    else:
        known = _fields(_TwoLevels, {n: row[n] for n in sides if n in row}, path, add, sides)
        for side in sides:
            if side not in row:
                add(f"{path}.{side}: missing; expected low and high, or levels")
        levels = (known["low"], known["high"]) if len(known) == 2 else None
    values = _fields(Factor, {n: v for n, v in plain.items() if n != "levels"}, path, add, names)
    if levels is None:
        return None
    listed = "levels" in row and len(levels) == 2 and not several_kinds((0, *levels))
    return Factor(key=key, levels=levels, sets=sets, listed=listed, **values)


def _level_tables(
    tables: dict[str, Any], path: str, add: AddProblem
) -> dict[str, dict[str, Level]]:
    """Read levels that are tables of settings, all with the same names; none if some are wrong."""
    first: dict[str, Level] = {}
    for level, values in tables.items():
        scalars = isinstance(values, dict) and all(
            isinstance(value, (bool, int, float, str)) for value in values.values()
        )
        if not scalars or not values:
            add(
                f"{path}.{level} = {short(values)}: expected a table of values, as in "
                "{ width = 64, depth = 2 }"
            )
            return {}
        first = first or values
        if values.keys() != first.keys():
            add(
                f"{path}.{level}: it sets {', '.join(values)}, but another level sets "
                f"{', '.join(first)}; expected every level to set the same names"
            )
            return {}
    return tables


class _TwoLevels(msgspec.Struct):
    """The form of a factor with two levels."""

    low: Level
    high: Level


def _stages(tables: object, add: AddProblem) -> dict[str, Stage]:
    if not isinstance(tables, dict):
        add(f"stages = {short(tables)}: expected a table [stages.NAME] for each stage")
        return {}
    stages = {}
    for name, table in tables.items():
        path = f"stages.{name}"
        if not isinstance(table, dict):
            add(f"{path} = {short(table)}: expected a table")
            continue
        plain = dict(table)
        engines = _engines(plain, add, f"{path}.")
        if isinstance(plain.get("command"), str):
            plain["command"] = split_command(plain["command"], add, f"{path}.command")
        names = [*(field for field in Stage.__struct_fields__ if field != "engines"), *ENGINES]
        stages[name] = Stage(**_fields(Stage, plain, path, add, names), engines=engines)
    return stages


def _augments(rows: object, add: AddProblem) -> tuple[Augment, ...]:
    if not isinstance(rows, list):
        add(f"augment = {short(rows)}: expected an array of tables [[augment]]")
        return ()
    built = [_section(Augment, row, f"augment[{i}]", add) for i, row in enumerate(rows)]
    return tuple(step for step in built if step is not None)


def _desires(table: object, add: AddProblem) -> dict[str, Desire]:
    if not isinstance(table, dict):
        add(f"desirability = {short(table)}: expected a table for each response")
        return {}
    built = {
        name: _section(Desire, row, f"desirability.{name}", add) for name, row in table.items()
    }
    return {name: desire for name, desire in built.items() if desire is not None}


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
