"""Checks of a study file: find every mistake at once and name each clearly."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from doe.errors import AddProblem, DoeError, SpecError, nearest, short
from doe.goals import check_constraints, check_desires
from doe.study.command import FUNCTION, PLACEHOLDERS, check_command
from doe.study.levels import allowed_rows, exclusions, inestimable_factor, kind_of
from doe.study.stages import STAGE_DIR, check_stages
from doe.study.streams import check_streams
from doe.study.values import (
    FACTORIAL,
    FIRST_LOOK,
    RECORDED,
    RUN_COLUMNS,
    STATE_COLUMNS,
    WHOLE_PLOT,
    Augment,
    Factor,
    Level,
    Responses,
    Study,
    coded_columns,
    covariate_step,
    is_name,
    seed_columns,
)
from doe.terms import parse_term

MOST_FACTORS = 16
MOST_PLANNED_RUNS = 1 << 17
MOST_LOOKED_AT = 20
"""Largest number of replicates with interim looks: error rates are simulated up to it."""
MOST_THREADS = 1024


def check_study(study: Study) -> None:
    """Raise SpecError with every inconsistency among a study's values."""
    if problems := study_problems(study):
        raise SpecError("the study", problems)


def study_problems(study: Study, keys_known: bool = True) -> list[str]:
    """List all inconsistencies; those that concern factors only if the factor keys are valid."""
    problems: list[str] = []
    add = problems.append
    _check_name(study.name, add)
    _check_factors(study, add)
    _check_responses(study, add)
    _check_replicates(study, add)
    if not 1 <= study.threads <= MOST_THREADS:
        add(f"threads = {study.threads}: expected 1 to {MOST_THREADS}")
    _check_json(study.settings, "settings", add)
    _check_json(study.design, "design", add)
    if not isinstance(study.design.get("kind", ""), str):
        add(f"design.kind = {short(study.design['kind'])}: expected the name of a kind of design")
    for name, table in study.engines.items():
        _check_json(table, name, add)
    for name, stage in study.stages.items():
        _check_json(stage.settings, f"stages.{name}.settings", add)
    if keys_known and all(len(factor.levels) > 1 for factor in study.factors):
        _check_backend(study, add)
        check_stages(study, add)
        _check_structure(study, add)
        _check_report(study, add)
        _check_stopping(study, add)
    return problems


# Values against each other ----------------------------------------------------------------------


def _check_name(name: str, add: AddProblem) -> None:
    plain = name.isprintable() and name == name.strip() and not re.search(r"[/\\]", name)
    if not plain or not name or name[0] in ".-" or len(name) > 100:
        add(
            f"name = {short(name)}: expected a plain name of 1 to 100 characters; it becomes a "
            "directory, so it cannot contain a slash or start with a dot or dash"
        )


def _check_factors(study: Study, add: AddProblem) -> None:
    if len(study.factors) > MOST_FACTORS:
        add(f"factors: got {len(study.factors)}; expected at most {MOST_FACTORS}")
    taken = {*_columns(study), *PLACEHOLDERS, STAGE_DIR}
    others: set[str] = set()
    for factor in study.factors:
        path = f"factors.{factor.key}"
        if not is_name(factor.key):
            add(f"{path}: a key is one letter, or a word of letters, digits and underscores")
        if factor.key == "I":
            add(f"{path}: I is the mean in alias tables; use another letter")
        if factor.key in taken:
            add(f"{path}: {factor.key!r} is the name of a column or placeholder; rename it")
        _check_levels(factor, path, add)
        made = dict.fromkeys(name for values in factor.sets.values() for name in values)
        for name in made:
            if not is_name(name):
                add(
                    f"{path}.levels: {short(name)} is not a valid name; expected letters, digits, _"
                )
            if name in (*study.keys, *study.settings, *PLACEHOLDERS) or name in others:
                add(f"{path}.levels: {name!r} is also used for something else; rename it")
        others |= made.keys()
        if factor.random and factor.role != "condition":
            add(
                f'{path}.random: only allowed with role = "condition"; a choice is not a sample '
                "of a population"
            )
    _check_strata(study, add)


def _several_errors(study: Study) -> bool:
    """Return whether some terms are tested against an error other than that of runs."""
    return bool(study.whole_plot_factors) or any(factor.random for factor in study.factors)


def _check_strata(study: Study, add: AddProblem) -> None:
    """Check hard-to-change factors and random conditions."""
    random = [factor.key for factor in study.factors if factor.random]
    hard = study.whole_plot_factors
    if not _several_errors(study):
        return
    what = f"{hard[0]} is hard to change" if hard else f"{random[0]} is random"
    if hard and len(hard) == len(study.factors):
        add(
            f"factors.{hard[0]}.hard: every factor is hard to change or belongs to a stage, so a "
            "whole plot would hold one configuration; leave at least one factor easy to change"
        )
    if len(random) > 1 or len(random) == len(study.factors):
        add(
            f"factors.{random[0]}.random: expected at most one random condition, together with at "
            "least one choice"
        )
    if study.stopping:
        add(
            f"stopping: interim looks test every term against one error, and {what}, which needs "
            "another; remove [stopping]"
        )


def _columns(study: Study) -> set[str]:
    """Return columns of the results that belong to neither factors nor responses."""
    own = (*coded_columns(study.keys), *seed_columns(study.streams), WHOLE_PLOT)
    return {*RUN_COLUMNS, *STATE_COLUMNS, *own}


def _check_levels(factor: Factor, path: str, add: AddProblem) -> None:
    levels = factor.levels
    sides = [f"{path}.low", f"{path}.high"]
    if len(levels) != 2:
        sides = [f"{path}.levels[{i}]" for i in range(len(levels))]
    for value, side in zip(levels, sides, strict=True):
        _check_json(value, side, add)
        if isinstance(value, str) and (not value.isprintable() or not value.strip()):
            add(f"{side} = {short(value)}: expected visible text")
    if len(levels) < 2:
        listing = f"only {short(levels[0])}" if levels else "nothing"
        add(f"{path}.levels: got {listing}; expected two or more levels")
    if len(levels) == 2 and factor.low == factor.high:
        add(f"{path}: low and high are both {short(factor.low)}; expected two distinct levels")
    elif twice := [value for i, value in enumerate(levels) if value in levels[:i]]:
        add(f"{path}.levels: {short(twice[0])} is listed twice; expected each level once")
    elif named := several_kinds(levels):
        place = f"{path}.levels: got" if len(levels) > 2 else f"{path}: got {_both(levels)},"
        add(f"{place} {named}; expected levels of one kind")
    if any(map(_is_too_long, levels)):
        return
    if factor.scale == "log" and not factor.numeric:
        word = next(value for value in levels if kind_of(value) != "number")
        add(f"{path}.scale = 'log': {short(word)} is not a number; expected numbers, or no scale")
    elif factor.scale == "log" and levels and (low := min(map(float, levels))) <= 0:
        add(f"{path}.scale = 'log': got the level {low:g}; logarithms need numbers above 0")
    elif factor.numeric and levels:
        low, high = min(map(float, levels)), max(map(float, levels))
        if math.isfinite(low) and math.isfinite(high) and not math.isfinite(high - low):
            add(f"{path}: got levels from {low} to {high}; expected a narrower range")


def _both(levels: Sequence[Level]) -> str:
    return " and ".join(map(short, levels))


def _check_responses(study: Study, add: AddProblem) -> None:
    responses = study.responses
    if not responses.returned:
        add("responses.metrics: empty; expected the names of the metrics that a run returns")
    for name in responses.names:
        if not is_name(name):
            add(
                f"responses: {short(name)} is not a valid name; expected letters, digits, "
                "underscores"
            )
    for name, count in Counter(responses.names).items():
        if count > 1:
            add(f"responses: {name!r} is listed {count} times; expected each response once")
    reserved = _columns(study)
    for name in sorted({*responses.names}):
        if name in study.keys:
            add(f"responses: {name!r} is also a factor key; rename one of them")
        if name in reserved and name not in RECORDED:
            add(f"responses: {name!r} is the name of a column of the results; rename it")
    metrics = (*responses.metrics, *responses.further)
    for name, parts in responses.averages.items():
        path = f"responses.averages.{name}"
        if not parts:
            add(f"{path}: empty; expected the metrics to average")
        for part in parts:
            if part not in metrics:
                add(f"{path}: {part!r} is not a metric{nearest(part, metrics)}")
        if len(set(parts)) < len(parts):
            add(f"{path}: a metric is listed twice; expected each once")
        for what, of in (("goal", responses.goal_of), ("unit", responses.unit_of)):
            _check_alike(parts, what, of, path, add)
        if (goal := responses.goals.get(name)) and parts and goal != responses.goal_of(parts[0]):
            add(
                f"responses.goals.{name} = {short(goal)}: its metrics have the goal "
                f"{responses.goal_of(parts[0])}; expected the same"
            )
    for name in responses.covariates:
        if covariate_step(name)[1] is None and name not in metrics:
            add(
                f"responses.covariates: {name!r} is not a metric{nearest(name, metrics)}; name it "
                "in "
                f'further too, or say at which step it is reported, as in "{name} at 0"'
            )
    if responses.covariates and (study.streams or _several_errors(study)):
        add(
            "responses.covariates: covariates need a single error term, and this study has "
            "several streams of seeds, hard-to-change factors or a random condition; remove "
            "covariates"
        )
    counted = responses.of if isinstance(responses.of, dict) else {}
    for section in ("units", "goals", "scales", "matters", "titles"):
        for name in getattr(responses, section):
            _check_response(name, section, responses, add)
    for name, size in responses.matters.items():
        if not (math.isfinite(size) and size > 0):
            add(f"responses.matters.{name} = {size:g}: expected a number above 0")
    for name in counted:
        _check_response(name, "of", responses, add)
    for items in counted.values() if counted else [responses.of or 1]:
        if not (isinstance(items, int) and 0 < items < 2**53):
            add(f"responses.of = {short(items)}: expected the number of items counted, above 0")
    check_constraints(responses.constraints, responses.names, add)
    goals = {name: responses.goal_of(name) for name in responses.names}
    check_desires(study.desirability, responses.names, goals, add)


def _check_response(name: str, section: str, responses: Responses, add: AddProblem) -> None:
    if name not in responses.names:
        near = nearest(name, responses.names)
        add(f"responses.{section}.{name}: no such response{near}")


def _check_alike(
    parts: Sequence[str], what: str, of: Callable[[str], str | None], path: str, add: AddProblem
) -> None:
    """Refuse an average of metrics with different goals, units or scales."""
    values = {of(part): part for part in reversed(parts)}
    if len(values) > 1:
        (value, first), (other, second) = list(values.items())[::-1][:2]
        add(
            f"{path}: {first} has the {what} {short(value)} and {second} {short(other)}; "
            f"expected metrics with one {what}; average them separately"
        )


def _check_replicates(study: Study, add: AddProblem) -> None:
    if study.replicates < 1:
        add(f"replicates = {short(study.replicates)}: expected at least 1")
    if study.streams:
        _check_seed_streams(study, add)
    elif len(study.seeds) < study.replicates:
        add(
            f"seeds: got {len(study.seeds)} for {short(study.replicates)} replicates; "
            "expected one per replicate"
        )
    every = [*study.seeds, *(seed for step in study.augment for seed in step.seeds)]
    for seed, count in Counter(every).items():
        if count > 1:
            add(f"seeds: {short(seed)} is listed {count} times; expected distinct seeds")
    for seed in dict.fromkeys((*every, *(s for seeds in study.streams.values() for s in seeds))):
        if not 0 <= seed < 2**63:
            add(f"seeds: got {short(seed)}; expected 0 to 2^63 - 1")
    if not -(2**63) <= study.order_seed < 2**63:
        add(f"order_seed = {short(study.order_seed)}: expected a 64-bit integer")


def _check_seed_streams(study: Study, add: AddProblem) -> None:
    """Check several streams of seeds: names, one seed per replicate, estimable shares."""
    for name in study.streams:
        if not is_name(name):
            add(f"seeds: {short(name)} is not a valid name; expected letters, digits, underscores")
    if study.seeds:
        add("seeds: got a list and streams; expected one of them")
    if any(len(seeds) != study.replicates for seeds in study.streams.values()):
        add(f"seeds: expected {study.replicates} of each stream, one per replicate")
    else:
        check_streams(study.streams, add)
    if study.centre or study.blocks:
        add(
            "seeds: several streams need whole replicates as blocks and no centre runs: a "
            "stream's share of the variation is estimated from configurations that ran with every "
            "seed; use a single list of seeds, or change the design"
        )
    if study.stopping:
        add(
            "seeds: interim looks assume independent replicates, and streams share seeds between "
            "replicates; remove [stopping], or use a single list of seeds"
        )


def _check_backend(study: Study, add: AddProblem) -> None:
    if study.backend == "command":
        check_command(study, add)
        return
    if not re.fullmatch(FUNCTION, study.backend):
        add(
            f"backend = {short(study.backend)}: expected package.module:function, or "
            '"command" with a command to run'
        )
    if study.command:
        add('command: given, but backend is not "command"; remove one of the two')
    defaults = {field.name: field.default for field in msgspec.structs.fields(Study)}
    for name in ("cwd", "python", "env", "metrics", "progress"):
        if getattr(study, name) not in (defaults[name], {}):
            add(f'{name}: only allowed with backend = "command"; remove one of the two')


def _check_json(value: object, path: str, add: AddProblem) -> None:
    """Check that settings can be written as JSON: no dates, no numbers that are not finite."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_json(item, f"{path}.{key}", add)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_json(item, f"{path}[{i}]", add)
    elif isinstance(value, float) and not math.isfinite(value):
        add(f"{path} = {value}: expected a finite number")
    elif _is_too_long(value):
        add(f"{path} = {short(value)}: expected a 64-bit integer")
    elif not isinstance(value, (bool, int, float, str)):
        add(f"{path} = {short(value)}: expected text, a number or a boolean; quote dates")


def _is_too_long(value: object) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def several_kinds(levels: Sequence[Level]) -> str:
    """Name the kinds of some levels, "numbers and words"; empty if all are of one kind."""
    kinds = dict.fromkeys(kind_of(value) for value in levels)
    named = [f"{kind}s" if kind != "switch" else "switches" for kind in kinds]
    return " and ".join(named) if len(named) > 1 else ""


def _too_few(study: Study, runs: int) -> str:
    if study.block_words:
        return f"blocks = {short(study.blocks)}: expected at least two runs in a block"
    return (
        f"fraction = {short(study.fraction)}: it leaves {runs} of {math.prod(study.sizes)} "
        "combinations; expected two or more: take a larger part"
    )


def _check_structure(study: Study, add: AddProblem) -> None:
    """Check fraction, exclusions, centre runs, blocks and augmentation; needs valid factor keys."""
    _check_centre(study, add)
    for i, step in enumerate(study.augment):
        _check_augment(study, step, f"augment[{i}]", add)
    if study.kind == FACTORIAL:
        _check_factorial(study, add)
        return
    try:
        exclusions(study)
    except DoeError as error:
        add(str(error))
    for name in ("fraction", "blocks"):
        if value := getattr(study, name):
            add(
                f"{name} = {short(value)}: only allowed in a factorial, and design.kind is "
                f"{study.kind}; remove one of them"
            )


def _check_factorial(study: Study, add: AddProblem) -> None:
    """Check the number of runs and what they can estimate."""
    runs = math.prod(study.sizes[:MOST_FACTORS])
    try:
        runs = runs // study.parts if study.parts else runs >> len(study.generators)
        if study.generators and not study.two_level:
            wide = next(f for f in study.factors if len(f.levels) != 2)
            add(
                f"fraction = {short(study.fraction)}: generators need two levels of every factor, "
                f"and {wide.key} has {len(wide.levels)}; use a part such as 1/2 or 1/3"
            )
    except DoeError as error:
        add(f"fraction = {short(study.fraction)}: {error}")
    else:
        try:
            if runs < 2 << len(study.block_words):
                add(_too_few(study, runs))
            _check_block_words(study, add)
        except DoeError as error:
            add(f"blocks = {short(study.blocks)}: {error}")
    if runs * study.replicates > MOST_PLANNED_RUNS:
        add(
            f"the design has {runs} runs per replicate and {short(study.replicates)} replicates; "
            f"expected at most {MOST_PLANNED_RUNS} runs: take a fraction"
        )
    elif study.exclude or any(factor.when for factor in study.factors):
        _check_exclude(study, add)


def _check_block_words(study: Study, add: AddProblem) -> None:
    for word in study.block_words:
        for i, factor in enumerate(study.factors):
            if word >> i & 1 and len(factor.levels) != 2:
                add(
                    f"blocks = {short(study.blocks)}: {factor.key} has {len(factor.levels)} levels;"
                    " expected interactions of two-level factors"
                )


def _check_augment(study: Study, step: Augment, path: str, add: AddProblem) -> None:
    points = step.points if not step.confirm else ()
    if sum(map(bool, (step.seeds, step.flip, step.part, step.axial, step.runs, points))) != 1:
        add(f"{path}: expected one of seeds (replicates), flip, part, axial, runs, points")
    if any(len(point) != len(study.factors) for point in step.points):
        add(f"{path}.points: expected a level for each of the {len(study.factors)} factors")
    if not 0 <= step.axial <= 1:
        add(f"{path}.axial: got {step.axial}; expected a number between 0 and 1")
    if not 0 <= step.runs <= MOST_PLANNED_RUNS:
        add(f"{path}.runs: got {step.runs}; expected at most {MOST_PLANNED_RUNS} runs")
    if step.confirm and not (step.seeds and step.response in study.responses.names):
        add(f"{path}.confirm: expected seeds and a response as well")
    if step.part and not 2 <= step.part <= study.parts:
        known = (
            f"2 to {study.parts}"
            if study.parts
            else "none, because the fraction is not of the form 1/N"
        )
        add(f"{path}.part = {step.part}: not a part of the design; expected {known}")
    for key in step.flip:
        if key not in study.keys:
            add(f"{path}.flip: {key!r} is not a factor{nearest(key, study.keys)}")
        elif len(study.factors[study.keys.index(key)].levels) != 2:
            add(f"{path}.flip: {key} has more than two levels; a fold-over exchanges two")


def _check_centre(study: Study, add: AddProblem) -> None:
    path = f"centre = {short(study.centre)}"
    if study.centre < 0:
        add(f"{path}: expected 0 or the number of centre runs in a replicate")
    if study.centre <= 0:
        return
    for factor in study.factors:
        kind = next((kind_of(v) for v in factor.levels if kind_of(v) != "number"), "")
        if kind:
            add(
                f"{path}: factors.{factor.key} is a {kind}, which has no middle; centre runs need "
                "numeric levels on every factor; expected these, or centre = 0"
            )
            return
        if any(not math.isfinite(float(v)) for v in factor.levels) or (
            factor.scale == "log" and min(map(float, factor.levels)) <= 0
        ):
            return  # Reported above.
        if factor.integer and not isinstance(factor.centre, int):
            add(
                f"{path}: the middle of factors.{factor.key} is {factor.centre}, which is not a "
                "whole number like its levels; write the levels with a decimal point if "
                "fractions can run"
            )
    at_levels = study.factors and all(f.centre in f.levels for f in study.factors)
    if study.kind == FACTORIAL and at_levels:
        add(f"{path}: the centre is already a configuration of the design; add replicates instead")


def _check_exclude(study: Study, add: AddProblem) -> None:
    try:
        rows = allowed_rows(study)
    except DoeError as error:
        add(str(error))
        return
    if not rows:
        add("exclude: every combination is excluded; expected at least two that can run")
    elif key := inestimable_factor(study, rows):
        add(
            f"exclude: the main effect of {key} is aliased with the other factors on the "
            f"{len(rows)} combinations that are left; exclude fewer, or leave {key} out"
        )


def _check_report(study: Study, add: AddProblem) -> None:
    """Check the [report] section: groups of responses, split, dropped factors, baselines."""
    section, names = study.report, study.responses.names
    for key in ([section.split] if section.split else []) + [*section.drop]:
        if key not in study.keys:
            add(f"report: {key!r} is not a factor{nearest(key, study.keys)}")
    groups = [*section.groups, *([section.further] if section.further else [])]
    for name, count in Counter(group.name for group in groups).items():
        if count > 1:
            add(f"report: {name!r} names {count} groups; expected each name once")
    for group in groups:
        path = f"report group {group.name!r}"
        if not re.fullmatch(r"[A-Za-z0-9][\w-]*", group.name, re.ASCII):
            add(f"{path}: the name becomes part of a file name; expected letters, digits, - and _")
        if not group.responses:
            add(f"{path}: responses is empty; expected names of responses")
        for name in group.responses:
            if name not in names:
                add(f"{path}: {name!r} is not a response{nearest(name, names)}")
        levels = {factor.key: factor.levels for factor in study.factors}
        for key, level in group.baseline.items():
            if key not in levels:
                add(f"{path}: baseline names {key!r}, which is not a factor{nearest(key, levels)}")
            elif level not in levels[key]:
                known = " or ".join(short(value) for value in levels[key])
                add(f"{path}: baseline has {key} = {short(level)}; expected {known}")


def _check_stopping(study: Study, add: AddProblem) -> None:
    """Check the [stopping] section: known terms and responses, valid sizes."""
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
    if not 0 <= rule.within < math.inf:
        add(f"stopping.within = {rule.within:g}: expected a distance from the best, or 0 for none")
    if not 0 <= rule.futility < 1:
        add(
            f"stopping.futility = {rule.futility:g}: expected a probability, or 0 to continue to "
            "the end"
        )
    for name in rule.responses:
        if name not in study.responses.names:
            add(f"stopping.responses: no {name!r}{nearest(name, study.responses.names)}")
    for term in rule.terms:
        try:
            parse_term(term, study.keys)
        except DoeError as error:
            add(f"stopping.terms: {error}")
