"""Every mistake a person can make in a study file, found at once and named clearly."""

from __future__ import annotations

import math
import re
from collections import Counter

from doe.errors import DoeError, SpecError, nearest
from doe.study.command import PLACEHOLDERS, AddProblem, check_command, short
from doe.study.values import FIRST_LOOK, RUN_COLUMNS, STATE_COLUMNS, Study, coded_columns
from doe.terms import parse_term

MOST_FACTORS = 16
MOST_RUNS = 1 << 17
MOST_LOOKED_AT = 20
"""Replicates of a study that is looked at: its error rates are simulated up to these."""
MOST_THREADS = 1024


def check_study(study: Study, source: str = "the study") -> None:
    """Raise SpecError with everything that is inconsistent within a study's values."""
    if problems := study_problems(study):
        raise SpecError(source, problems)


def study_problems(study: Study, keys_known: bool = True) -> list[str]:
    """Everything that is inconsistent; what refers to factors only if their keys are known."""
    problems: list[str] = []
    add = problems.append
    _check_name(study.name, add)
    _check_factors(study, add)
    _check_responses(study, add)
    _check_replicates(study, add)
    if not 1 <= study.threads <= MOST_THREADS:
        add(f"threads = {study.threads}: expected 1 to {MOST_THREADS}")
    _check_plain(study.settings, "settings", add)
    _check_plain(study.slurm, "slurm", add)
    if keys_known:
        _check_backend(study, add)
        _check_structure(study, add)
        _check_report(study, add)
        _check_stopping(study, add)
    return problems


# Tables to values -------------------------------------------------------------------------------


# Values against each other ----------------------------------------------------------------------


def _check_name(name: str, add: AddProblem) -> None:
    plain = name.isprintable() and name == name.strip() and not re.search(r"[/\\]", name)
    if not plain or not name or name[0] in ".-" or len(name) > 100:
        add(
            f"name = {short(name)}: expected a plain name of 1 to 100 characters; it becomes a "
            "directory, so it holds no slash and starts with neither dot nor dash"
        )


def _check_factors(study: Study, add: AddProblem) -> None:
    if len(study.factors) > MOST_FACTORS:
        add(f"factors: got {len(study.factors)}; expected at most {MOST_FACTORS}")
    taken = {*RUN_COLUMNS, *STATE_COLUMNS, *coded_columns(study.keys), *PLACEHOLDERS}
    for factor in study.factors:
        path = f"factors.{factor.key}"
        if not re.fullmatch(r"[A-Za-z]\w*", factor.key, re.ASCII):
            add(f"{path}: a key is one letter, or a word of letters, digits and underscores")
        if factor.key == "I":
            add(f"{path}: I names the mean in alias tables; take another letter")
        if factor.key in taken:
            add(f"{path}: {factor.key!r} is the name of a column or placeholder; rename it")
        for side in ("low", "high"):
            value = getattr(factor, side)
            if isinstance(value, float) and not math.isfinite(value):
                add(f"{path}.{side} = {value}: expected a finite number")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                add(f"{path}.{side} = {short(value)}: expected a 64-bit integer")
            if isinstance(value, str) and (not value.isprintable() or not value.strip()):
                add(f"{path}.{side} = {short(value)}: expected visible text")
        if factor.low == factor.high:
            add(f"{path}: low and high are both {short(factor.low)}; expected two distinct levels")


def _check_responses(study: Study, add: AddProblem) -> None:
    responses = study.responses
    if not responses.metrics:
        add("responses.metrics: empty; expected the names of the metrics that a run returns")
    for name in responses.names:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            add(f"responses: {short(name)} is no name; expected letters, digits, underscores")
    for name, count in Counter(responses.names).items():
        if count > 1:
            add(f"responses: {name!r} stands {count} times; expected each response once")
    reserved = {*RUN_COLUMNS, *STATE_COLUMNS, *coded_columns(study.keys)}
    for name in sorted({*responses.names}):
        if name in study.keys:
            add(f"responses: {name!r} is also a factor key; rename one of them")
        if name in reserved:
            add(f"responses: {name!r} is the name of a column of the results; rename it")
    metrics = (*responses.metrics, *responses.further)
    for name, parts in responses.averages.items():
        path = f"responses.averages.{name}"
        if not parts:
            add(f"{path}: empty; expected the metrics to average")
        for part in parts:
            if part not in metrics:
                add(f"{path}: {part!r} is no metric{nearest(part, metrics)}")
        if len(set(parts)) < len(parts):
            add(f"{path}: a metric stands twice; expected each once")
    for name in responses.units:
        if name not in responses.names:
            add(f"responses.units.{name}: no such response{nearest(name, responses.names)}")
    for name, size in responses.matters.items():
        if name not in responses.names:
            add(f"responses.matters.{name}: no such response{nearest(name, responses.names)}")
        if not (math.isfinite(size) and size > 0):
            add(f"responses.matters.{name} = {size}: expected an effect above zero")


def _check_replicates(study: Study, add: AddProblem) -> None:
    if study.replicates < 1:
        add(f"replicates = {short(study.replicates)}: expected at least 1")
    if len(study.seeds) < study.replicates:
        add(
            f"seeds: got {len(study.seeds)} for {short(study.replicates)} replicates; "
            "expected one per replicate"
        )
    every = [*study.seeds, *(seed for step in study.augment for seed in step.seeds)]
    for seed, count in Counter(every).items():
        if count > 1:
            add(f"seeds: {short(seed)} stands {count} times; expected distinct seeds")
        if not 0 <= seed < 2**63:
            add(f"seeds: got {short(seed)}; expected 0 to 2^63 - 1")
    if not -(2**63) <= study.order_seed < 2**63:
        add(f"order_seed = {short(study.order_seed)}: expected a 64-bit integer")


def _check_backend(study: Study, add: AddProblem) -> None:
    if study.backend == "command":
        check_command(study, add)
        return
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", study.backend):
        add(
            f"backend = {short(study.backend)}: expected package.module:function, or "
            '"command" with a command to run'
        )
    if study.command:
        add('command: given, but backend is not "command"; remove one of the two')
    for name in ("metrics", "progress"):
        if getattr(study, name) != type(getattr(study, name))():
            add(f'{name}: the section is for backend = "command"; remove one of the two')


def _check_plain(value: object, path: str, add: AddProblem) -> None:
    """Settings travel as JSON, so a date or a number that is not finite cannot."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(item, f"{path}.{key}", add)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_plain(item, f"{path}[{i}]", add)
    elif isinstance(value, float) and not math.isfinite(value):
        add(f"{path} = {value}: expected a finite number")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        add(f"{path} = {short(value)}: expected a 64-bit integer")
    elif not isinstance(value, (bool, int, float, str)):
        add(f"{path} = {short(value)}: expected text, a number or a boolean; quote dates")


def _check_structure(study: Study, add: AddProblem) -> None:
    """Fraction, blocks and augmentation: what needs valid factor keys to be read."""
    runs = 1 << min(len(study.factors), MOST_FACTORS)
    try:
        runs >>= len(study.generators)
    except DoeError as error:
        add(f"fraction = {short(study.fraction)}: {error}")
    else:
        try:
            if runs < 2 << len(study.block_words):
                add(f"blocks = {short(study.blocks)}: expected at least two runs in a block")
        except DoeError as error:
            add(f"blocks = {short(study.blocks)}: {error}")
    for i, step in enumerate(study.augment):
        if bool(step.seeds) == bool(step.flip):
            add(f"augment[{i}]: expected either seeds (replicates) or flip (a fold-over)")
        for key in step.flip:
            if key not in study.keys:
                add(f"augment[{i}].flip: {key!r} is no factor{nearest(key, study.keys)}")
    if runs * study.replicates > MOST_RUNS:
        add(
            f"the design has {runs} runs a replicate, {short(study.replicates)} replicates; "
            f"expected at most {MOST_RUNS} runs: take a fraction"
        )


def _check_report(study: Study, add: AddProblem) -> None:
    """The [report] section: groups of responses, split, dropped factors, baselines."""
    section, names = study.report, study.responses.names
    for key in ([section.split] if section.split else []) + [*section.drop]:
        if key not in study.keys:
            add(f"report: {key!r} is no factor{nearest(key, study.keys)}")
    groups = [*section.groups, *([section.further] if section.further else [])]
    for name, count in Counter(group.name for group in groups).items():
        if count > 1:
            add(f"report: {name!r} names {count} groups; expected each name once")
    for group in groups:
        path = f"report group {group.name!r}"
        if not re.fullmatch(r"[A-Za-z0-9][\w-]*", group.name, re.ASCII):
            add(f"{path}: a name becomes part of a file's; expected letters, digits, - and _")
        if not group.responses:
            add(f"{path}: responses is empty; expected names of responses")
        for name in group.responses:
            if name not in names:
                add(f"{path}: {name!r} is no response{nearest(name, names)}")
        levels = {factor.key: (factor.low, factor.high) for factor in study.factors}
        for key, level in group.baseline.items():
            if key not in levels:
                add(f"{path}: baseline names {key!r}, no factor{nearest(key, levels)}")
            elif level not in levels[key]:
                low, high = levels[key]
                add(
                    f"{path}: baseline has {key} = {short(level)}; expected {short(low)} "
                    f"or {short(high)}"
                )


def _check_stopping(study: Study, add: AddProblem) -> None:
    """The [stopping] section: terms and responses that are there, sizes that can be."""
    rule = study.stopping
    if rule is None:
        return
    if not FIRST_LOOK <= rule.max_replicates <= MOST_LOOKED_AT:
        add(
            f"stopping.max_replicates = {rule.max_replicates}: expected {FIRST_LOOK} to "
            f"{MOST_LOOKED_AT}"
        )
    if not 0 < rule.alpha < 1:
        add(f"stopping.alpha = {rule.alpha:g}: expected a level between 0 and 1")
    for name in rule.responses:
        if name not in study.responses.names:
            add(f"stopping.responses: no {name!r}{nearest(name, study.responses.names)}")
    for term in rule.terms:
        try:
            parse_term(term, study.keys)
        except DoeError as error:
            add(f"stopping.terms: {error}")
