"""`doe power`: what effect a design can see, and how many replicates it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doe.cli.complete import complete_response
from doe.cli.options import (
    FactorsOption,
    FractionOption,
    JsonOption,
    OrderOption,
    StudyOption,
    chosen_study,
    split_names,
)

if TYPE_CHECKING:
    from doe.design.power import DesignSize
    from doe.results.designs import PowerOfTerms
    from doe.store.plan import Plan
    from doe.views.table import Table


def power(
    factors: FactorsOption = None,
    fraction: FractionOption = None,
    study: StudyOption = None,
    response: Annotated[
        str | None,
        typer.Option(
            help="With a study that has run: take sigma from this response.",
            autocompletion=complete_response,
        ),
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation between replicates [default: 1].")
    ] = None,
    effect: Annotated[
        float | None, typer.Option(help="Effect to detect: mean at high minus mean at low.")
    ] = None,
    sequential: Annotated[
        bool,
        typer.Option("--sequential", help="Stop when decided: looks after each of N replicates."),
    ] = False,
    effects: Annotated[
        str | None,
        typer.Option(help="With --sequential: sizes of the terms that are not zero: 3,1.5."),
    ] = None,
    matters: Annotated[
        float | None,
        typer.Option(help="With --sequential: the smallest effect worth knowing."),
    ] = None,
    replicates: Annotated[int, typer.Option("--replicates", "-n", min=1, help="Show 1 to N.")] = 8,
    blocks: Annotated[
        bool, typer.Option("--blocks/--no-blocks", help="Each replicate is a block.")
    ] = True,
    order: OrderOption = None,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    target: Annotated[float, typer.Option("--power", help="Power aimed at.")] = 0.8,
    json: JsonOption = False,
) -> None:
    """Power of a design by the noncentral t distribution."""
    from doe.design.power import replicates_needed
    from doe.views.terminal import print_json, print_table

    highest = 2 if sequential and order is None else order
    base, pilot, by_term = _sizes(factors, fraction, study, highest, blocks, response)
    sigma = pilot if sigma is None and pilot is not None else (1.0 if sigma is None else sigma)
    if sequential:
        if effect is not None:
            from doe.errors import DoeError

            raise DoeError("--effect is for a fixed design; with --sequential give --effects")
        _sequential(base, effects, matters, sigma, replicates, alpha, json)
        return
    if effects is not None or matters is not None:
        from doe.errors import DoeError

        raise DoeError("--effects and --matters belong to --sequential; give it too")
    rows = power_rows(base, replicates, sigma, effect, alpha, target)
    planned = []
    if by_term is not None:
        planned = by_term.at(base, sigma, effect, alpha, target)
        for n, row in enumerate(rows, start=1):
            size = base._replace(replicates=n)
            terms = by_term.at(size, sigma, effect, alpha, target)
            row["terms"] = [term._asdict() for term in terms]
    needed = needed_holm = None
    if effect is not None:
        needed = replicates_needed(effect, sigma, base, alpha, target)
        needed_holm = replicates_needed(effect, sigma, base, alpha / base.terms, target)
    if json:
        print_json(
            {
                "sigma": sigma,
                "sigma_from": response,
                "effect": effect,
                "alpha": alpha,
                "power": target,
                "replicates_needed": needed,
                "replicates_needed_holm": needed_holm,
                "designs": rows,
            }
        )
        return
    print_table(
        power_table(base, rows, sigma, response, effect, (needed, needed_holm), alpha, target)
    )
    if planned:
        from doe.views.plan_tables import detection_table

        print_table(detection_table(planned, base.replicates, effect, target))


def _sequential(
    base: DesignSize,
    effects: str | None,
    matters: float | None,
    sigma: float,
    most: int,
    alpha: float,
    json: bool,
) -> None:
    """Expected replicates and runs of a study that stops when it is decided."""
    import numpy as np

    from doe.analysis.sequential import Rule, expected
    from doe.errors import DoeError
    from doe.study.checks import MOST_LOOKED_AT
    from doe.study.values import FIRST_LOOK
    from doe.views.terminal import print_json, print_table

    try:
        sizes = [float(part) for part in split_names(effects)]
    except ValueError:
        raise DoeError(f"--effects {effects}: expected numbers such as 3,1.5") from None
    if not FIRST_LOOK <= most <= MOST_LOOKED_AT:
        raise DoeError(
            f"--replicates {most}: expected {FIRST_LOOK} to {MOST_LOOKED_AT} with --sequential"
        )
    if not matters or matters <= 0:
        raise DoeError(
            "--sequential needs --matters, the smallest effect worth knowing: a term without "
            "effect is never decided without it"
        )
    if sigma <= 0 or not 0 < alpha < 1:
        raise DoeError(f"--sigma {sigma:g} --alpha {alpha:g}: expected a positive sigma, a level")
    if len(sizes) > base.terms:
        raise DoeError(f"--effects names {len(sizes)} effects of {base.terms} terms")
    truth = np.zeros(base.terms)
    truth[: len(sizes)] = sizes
    rule = Rule(most, alpha)
    course = expected(truth, sigma, base.cells, base.terms, rule, matters)
    rows = [
        {"replicates": n, "runs": n * base.cells, "decided": decided, "stopped": stopped}
        for n, decided, stopped in zip(rule.looks, course.decided, course.stopped_by, strict=True)
    ]
    runs = course.replicates * base.cells
    if json:
        print_json(
            {
                "sigma": sigma,
                "effects": sizes,
                "terms": base.terms,
                "matters": matters,
                "alpha": alpha,
                "expected_replicates": course.replicates,
                "expected_runs": runs,
                "looks": rows,
            }
        )
        return
    print_table(sequential_table(rows, base, course.replicates, sigma, matters, alpha))


def sequential_table(
    rows: list[dict[str, Any]],
    base: DesignSize,
    mean: float,
    sigma: float,
    matters: float,
    alpha: float,
) -> Table:
    """The course of the decision, look by look."""
    from doe.numbers import cell_text, share_text
    from doe.views.table import Column, Row, Table

    columns = (
        Column("replicates", "Reps", "int"),
        Column("runs", "Runs", "int"),
        Column("decided", "Terms decided, %", "int"),
        Column("stopped", "Stopped by then, %", "int"),
    )
    saved = 1.0 - mean / rows[-1]["replicates"]
    notes = (
        f"Expected: {cell_text(mean, 'fixed1')} replicates, {cell_text(mean * base.cells, 'int')} "
        f"runs, {share_text(saved)} fewer than {rows[-1]['runs']}.",
        f"σ = {cell_text(sigma, 'short')}, {base.terms} terms, α = {alpha:g} over all looks and "
        f"terms; an effect below {matters:g} is negligible. Shares of 2000 simulated studies.",
    )
    body = tuple(
        Row((row["replicates"], row["runs"], 100 * row["decided"], 100 * row["stopped"]))
        for row in rows
    )
    return Table("sequential", "Stopping when it is decided", columns, body, notes)


def _sizes(
    factors: int | None,
    fraction: str | None,
    study: Path | None,
    order: int | None,
    blocks: bool,
    response: str | None,
) -> tuple[DesignSize, float | None, PowerOfTerms | None]:
    """The design, sigma where a pilot study has run, and the terms of factors with levels."""
    from doe.cli.alias import lettered_fraction, with_fraction
    from doe.design.fractions import alias_chains
    from doe.design.power import DesignSize, design_size
    from doe.errors import DoeError
    from doe.results.designs import (
        design_facts,
        level_design_size,
        power_of_terms,
        told_by_levels,
    )
    from doe.store.plan import load_plan
    from doe.terms import parse_generators

    if factors is None:
        planned = load_plan(chosen_study(study))
        if planned.study.streams:
            raise DoeError(
                "replicates of this study share seeds, and its power depends on the share of each "
                "stream, which no plan knows; ask with --factors for replicates that share none"
            )
        asked, design = with_fraction(planned, fraction)
        by_term = None
        if told_by_levels(asked):
            by_term = power_of_terms(asked, design, order)
            base = level_design_size(asked, design, design_facts(asked, design, order))
        else:
            base = design_size(asked, order)
        pilot = pilot_sigma(planned, response) if response else None
        return (base if blocks else base._replace(blocks_per_replicate=0)), pilot, by_term
    if response is not None:
        raise DoeError("--response takes sigma from a study; name it with --study, not --factors")
    keys, text = lettered_fraction(factors, fraction, study)
    generators = parse_generators(text, keys)
    terms = len(alias_chains(generators, len(keys), order or len(keys)))
    return DesignSize(1 << (len(keys) - len(generators)), 1, int(blocks), terms), None, None


def pilot_sigma(planned: Plan, response: str) -> float:
    """Standard deviation between replicates of a configuration, from the runs of a study."""
    from doe.design.power import pooled_sigma
    from doe.results.observations import observations, study_runs

    study, statuses = planned.study, planned.scan()
    (observed,) = observations(study, statuses, study_runs(study, statuses), [response])
    done = [(y, s.run) for y, s in zip(observed.y.tolist(), statuses, strict=True) if y == y]
    return pooled_sigma([y for y, _ in done], [r.row for _, r in done], [r.block for _, r in done])


def power_rows(
    base: DesignSize, most: int, sigma: float, effect: float | None, alpha: float, target: float
) -> list[dict[str, Any]]:
    """One row per number of replicates: for the test of one term by itself, and for the smallest of
    all terms' p values after Holm's adjustment, which is tested at alpha / terms.
    """
    from doe.design.power import detectable_effect, power

    rows = []
    for n in range(1, most + 1):
        size = base._replace(replicates=n)
        row: dict[str, Any] = {"replicates": n, "runs": size.runs, "df_error": size.df_error}
        tested = size.df_error >= 1
        for suffix, level in (("", alpha), ("_holm", alpha / size.terms)):
            row[f"detectable{suffix}"] = (
                detectable_effect(sigma, size, level, target) if tested else None
            )
            row[f"power{suffix}"] = (
                power(effect, sigma, size, level) if tested and effect is not None else None
            )
        rows.append(row)
    return rows


def power_table(
    base: DesignSize,
    rows: list[dict[str, Any]],
    sigma: float,
    response: str | None,
    effect: float | None,
    needed: tuple[int | None, int | None],
    alpha: float,
    target: float,
) -> Table:
    """The rows as a table, with what was assumed in its notes."""
    from doe.numbers import cell_text, share_text
    from doe.views.table import Column, Row, Table

    columns = [
        Column("replicates", "Reps", "int"),
        Column("runs", "Runs", "int"),
        Column("df_error", "df", "int"),
        Column("detectable", f"Effect at {share_text(target)}", "num"),
        Column("detectable_holm", "Holm", "num"),
    ]
    if effect is not None:
        columns.append(Column("power", f"Power at {effect:g}", "num"))
        columns.append(Column("power_holm", "Holm", "num"))
    source = f"from the runs' {response}" if response else "assumed"
    blocked = "each replicate a block" if base.blocks_per_replicate else "without blocks"
    notes = [f"σ = {cell_text(sigma, 'short')} ({source}), α = {alpha:g}, two-sided, {blocked}."]
    notes.append(
        f"Holm: the effect stands out of {base.terms} terms with p adjusted for all of them, "
        "as in the headlines of a report."
    )
    if base.levels > 2:
        notes.append(f"Effect: the difference between two levels of a factor with {base.levels}.")
    if needed[0] is not None:
        notes.append(
            f"An effect of {effect:g} needs {needed[0]} replicates for {share_text(target)} power, "
            f"{needed[1]} after Holm's adjustment."
        )
    body = tuple(Row(tuple(row[c.key] for c in columns)) for row in rows)
    return Table("power", "Power of the design", tuple(columns), body, tuple(notes))
