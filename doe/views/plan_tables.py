"""Tables of a plan: factors, aliases, run order, power."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doe.design.fractions import alias_chains, resolution, roman, word_length_pattern
from doe.design.runs import Design
from doe.errors import counted
from doe.numbers import about, cell_text, share_text
from doe.terms import (
    Generator,
    SignedTerm,
    config_header,
    defining_relation,
    format_generators,
    single_letters,
    term_name,
)
from doe.views.table import Column, Row, Table, rows_of

if TYPE_CHECKING:
    from doe.analysis.dataset import FactorColumn
    from doe.analysis.design_report import Confounding, DesignReport, TermPlan
    from doe.design.power import DesignSize, PowerQuestion
    from doe.results.budget import Known, Offer
    from doe.results.designs import PlannedDesign
    from doe.results.power import PowerAnswer

CONFOUNDED = 0.01
"""Confounding that is worth a word: so much of a unit of another term."""
BRACKETS = "In brackets: how much of one unit of the other term is added to this one."
CONFOUNDED_SHOWN = 4


def factors_table(factors: Sequence[FactorColumn], meanings: Mapping[str, str]) -> Table:
    """Factors with their levels, and scale and meaning where the study says so."""
    two = all(len(factor.levels) == 2 for factor in factors)
    described = any(meanings.values())
    scaled = not two or any(factor.scale == "log" for factor in factors)
    ends = [Column("low", "Low (−1)"), Column("high", "High (+1)")]
    columns = (
        Column("key", "Factor"),
        Column("name", "Name"),
        *(ends if two else [Column("levels", "Levels")]),
        *([Column("scale", "Scale", keep=False)] if scaled else ()),
        *([Column("description", "Meaning", keep=False)] if described else ()),
    )
    rows = []
    for f in factors:
        shown = f.labels if two else [", ".join(f.labels)]
        scale = [f.scale if f.numeric else ""] if scaled else []
        name = "" if f.name == f.key else f.name
        rows.append(Row((f.key, name, *shown, *scale, *([meanings[f.key]] if described else ()))))
    return Table("factors", "Factors", columns, tuple(rows))


def order_table(design: Design, most: int) -> Table:
    """Return the first runs in the order in which they start."""
    short = single_letters(design.keys)
    columns = (
        Column("order", "Order", "int"),
        Column("run", "Run"),
        Column("config", config_header(design.keys)),
        Column("replicate", "Replicate", "int", keep=short),
        Column("block", "Block", "int", keep=short),
        *(
            [Column(f"seed_{name}", f"Seed {name}", "int", keep=short) for name in design.streams]
            or [Column("seed", "Seed", "int", keep=short)]
        ),
        *([Column("whole_plot", "Whole plot", "int")] if design.plotted else ()),
    )
    rows = tuple(
        Row(
            (
                *(r.run_order, r.run_id, r.config, r.replicate, r.block),
                *(r.seeds.values() or (r.seed,)),
                *([r.whole_plot] if design.plotted else ()),
            )
        )
        for r in design.runs[:most]
    )
    left = len(design.runs) - len(rows)
    notes = (f"{left} more runs follow in design.csv.",) if left else ()
    return Table("run-order", f"Run order, first {len(rows)}", columns, rows, notes)


def terms_table(
    design: PlannedDesign, detectable: Mapping[str, float | None] | None = None
) -> Table:
    """Return what the runs can say about each term of the model."""
    facts = design.facts
    columns = (
        Column("term", "Term"),
        Column("df", "df", "int"),
        Column("of", "of", "int"),
        Column("vif", "VIF", "num"),
        *([Column("detectable", "80 % power", "num")] if detectable else []),
        Column("confounded", "Confounded with"),
    )
    rows = rows_of(
        columns,
        facts.terms,
        lambda t: {"term": "strong"} if _strong(t) or t.df < t.df_asked else {},
        of=lambda t: t.df_asked,
        detectable=lambda t: detectable.get(t.term) if detectable else None,
        confounded=_confounded_text,
    )
    bracketed = any("(" in str(row.values[-1]) for row in rows)
    notes = (
        f"{facts.coefficients} coefficients, {facts.rank} of them estimable on {facts.runs} runs; "
        f"{facts.df_residual} degrees of freedom are left, {facts.df_pure} from repeated runs.",
        *([BRACKETS] if bracketed else []),
        *([f"{DETECTABLE} {EFFECT_OF_TERM}"] if detectable else []),
        *(_relation(design.generators, design.runs.keys) if design.regular else ()),
    )
    return Table("terms", "What the runs can estimate", columns, rows, notes)


def _strong(term: TermPlan) -> list[Confounding]:
    """Return the confounding of a term that is worth a word."""
    return [c for c in term.confounded if c.strength > CONFOUNDED]


def _confounded_text(term: TermPlan) -> str:
    strong = _strong(term)
    more = len(strong) - CONFOUNDED_SHOWN
    shown = ", ".join(map(_confounding, strong[:CONFOUNDED_SHOWN]))
    return shown + (f" and {more} more" if more > 0 else "")


def _confounding(other: Confounding) -> str:
    part = "" if other.strength > 1 - 1e-9 else f" ({cell_text(other.strength, 'fixed2')})"
    return f"{'−' * (other.sign < 0)}{other.term}{part}"


def clear(facts: DesignReport) -> bool:
    """Return whether no term of the model is confounded with another."""
    return all(t.df == t.df_asked and not t.confounded and t.vif == 1.0 for t in facts.terms)


def power_tables(answer: PowerAnswer) -> list[Table]:
    """Return the tables of a question about power."""
    if answer.size is None:
        return [strata_power_table(answer.document["designs"], answer.question)]
    if "looks" in answer.document:
        return [sequential_table(answer.document, answer.size)]
    tables = [power_table(answer.document, answer.question, answer.size)]
    if not answer.regular:
        planned = answer.document["planned"]
        tables.append(detection_table(planned, answer.size.replicates, answer.question))
    return tables


def detection_table(
    terms: Sequence[Mapping[str, Any]], replicates: int, question: PowerQuestion
) -> Table:
    """Tabulate what the F test of each term detects."""
    columns = [
        Column("term", "Term"),
        Column("df", "df", "int"),
        Column("detectable", f"Effect at {share_text(question.target)}", "num"),
    ]
    if question.effect is not None:
        columns.append(Column("power", f"Power at {question.effect:g}", "num"))
    title = f"Power of the F tests, {counted(replicates, 'replicate')}"
    rows = tuple(Row(tuple(term[c.key] for c in columns)) for term in terms)
    return Table("terms power", title, tuple(columns), rows, (EFFECT_OF_TERM,))


DETECTABLE = "80 % power: an effect of so many σ is found with this power at α = 0.05."
EFFECT_OF_TERM = (
    "Effect of a term: between two levels of each of its factors, the least favourable ones, with "
    "none of it at further levels; of a square: the ends of the range above its middle. F test of "
    "the whole term by itself."
)


def strata_power_table(rows: Sequence[Mapping[str, Any]], asked: PowerQuestion) -> Table:
    """Return what the tests against each error can see, by the number of replicates."""
    columns = (
        Column("replicates", "Replicates", "int"),
        Column("stratum", "Error of"),
        Column("groups", "Groups", "int"),
        Column("df_error", "df", "num"),
        Column("detectable", f"{share_text(asked.target)} power", "num"),
        *([Column("power", "Power", "num")] if asked.effect is not None else []),
        Column("terms", "Terms", keep=False),
    )
    shown = tuple(
        Row(tuple(", ".join(v) if isinstance(v := row[c.key], tuple) else v for c in columns))
        for row in rows
    )
    notes = (
        f"σ of runs = {about(asked.sigma)}, α = {asked.alpha:g}; whole plots and "
        "other groups are assumed to vary as much as runs. Empty: no error to test against.",
    )
    return Table("power", "Detectable effects, by stratum", columns, shown, notes)


def power_table(document: Mapping[str, Any], asked: PowerQuestion, base: DesignSize) -> Table:
    """Tabulate power by the number of replicates; notes say what was assumed."""
    columns = [
        Column("replicates", "Reps", "int"),
        Column("runs", "Runs", "int"),
        Column("df_error", "df", "int"),
        Column("detectable", f"Effect at {share_text(asked.target)}", "num"),
        Column("detectable_holm", "Holm", "num"),
    ]
    if asked.effect is not None:
        columns.append(Column("power", f"Power at {asked.effect:g}", "num"))
        columns.append(Column("power_holm", "Holm", "num"))
    named, needed = document["sigma_from"], document["replicates_needed"]
    source = f"from the runs' {named}" if named else "assumed"
    blocked = "each replicate a block" if base.blocks_per_replicate else "without blocks"
    notes = [
        f"σ = {about(asked.sigma)} ({source}), α = {asked.alpha:g}, two-sided, {blocked}.",
        f"Holm: the effect is significant with p adjusted for all {base.terms} terms, as in the "
        "headlines of a report.",
    ]
    if base.levels > 2:
        notes.append(f"Effect: the difference between two levels of a factor with {base.levels}.")
    if needed is not None:
        notes.append(
            f"An effect of {asked.effect:g} needs {needed} replicates for "
            f"{share_text(asked.target)} power, {document['replicates_needed_holm']} after Holm's "
            "adjustment."
        )
    body = tuple(Row(tuple(row[c.key] for c in columns)) for row in document["designs"])
    return Table("power", "Power of the design", tuple(columns), body, tuple(notes))


def sequential_table(document: Mapping[str, Any], base: DesignSize) -> Table:
    """Tabulate the course of the decision, look by look."""
    from doe.analysis.sequential import DRAWS  # numpy, which other tables of a plan do without

    rows, mean = document["looks"], document["expected_replicates"]
    columns = (
        Column("replicates", "Reps", "short"),
        Column("runs", "Runs", "int"),
        Column("decided", "Terms decided, %", "int"),
        Column("stopped", "Stopped by then, %", "int"),
    )
    saved = 1.0 - mean / rows[-1]["replicates"]
    notes = (
        f"Expected: {cell_text(mean, 'fixed1')} replicates, {cell_text(mean * base.cells, 'int')} "
        f"runs, {share_text(saved)} fewer than {rows[-1]['runs']}.",
        f"σ = {about(document['sigma'])}, {base.terms} terms, α = {document['alpha']:g} over all "
        f"looks and terms; an effect below {document['matters']:g} is negligible. Shares of "
        f"{DRAWS} simulated studies.",
    )
    body = tuple(
        Row((row["replicates"], row["runs"], 100 * row["decided"], 100 * row["stopped"]))
        for row in rows
    )
    return Table("sequential", "Stopping when it is decided", columns, body, notes)


def budget_tables(found: Sequence[Offer], known: Known) -> tuple[Table, ...]:
    """Designs that fit a budget, by the numbers that can be chosen; what each response shows."""
    from doe.results.budget import MOST_REPLICATES

    timed = any(offer.hours is not None for offer in found)
    columns = (
        Column("number", "#", "int"),
        Column("design", "Design"),
        Column("runs", "Runs", "int"),
        *((Column("hours", "Hours", "about"),) if timed else ()),
        Column("at_80", "80 %", "about"),
        Column("at_90", "90 %", "about"),
        Column("confounded", "Confounded"),
    )
    rows = tuple(
        Row(
            (
                *(number, offer.design, offer.runs),
                *((offer.hours,) if timed else ()),
                *(*offer.detectable, offer.confounded),
            )
        )
        for number, offer in enumerate(found, start=1)
    )
    sequential = any(offer.study.stopping for offer in found)
    alone = any(o.study.replicates == 1 and o.detectable[0] is not None for o in found)
    full = any(o.study.replicates == MOST_REPLICATES for o in found)
    notes = (
        "80 %, 90 %: smallest effect detected with this power, in σ of single runs (one term, "
        "α = 0.05)."
        + " A single replicate is tested against the interactions left out of its model." * alone
        + " Until decided: as one of all terms, by the last look." * sequential
        + f" No design has more than {MOST_REPLICATES} replicates." * full
        + f"{f' Known: {known.words}.' if known.words else ''}",
    )
    designs = Table("budget", "Designs that fit", columns, rows, notes)
    return (designs, _sizes_table(found, known)) if known.sigmas else (designs,)


def _sizes_table(found: Sequence[Offer], known: Known) -> Table:
    """Return the smallest effect on each response that each design detects."""
    columns = (
        Column("response", "Response"),
        Column("power", "Power"),
        *(Column(str(number), str(number), "about") for number in range(1, len(found) + 1)),
    )
    rows = []
    for name, sigma in known.sigmas.items():
        relative = name in known.logarithms
        for i, power in enumerate(("80 %", "90 %")):
            sizes = (None if e is None else e * sigma for e in (o.detectable[i] for o in found))
            if relative:
                sizes = (None if size is None else 100.0 * math.expm1(size) for size in sizes)
            rows.append(Row((f"{name}, %" if relative else name, power, *sizes)))
    note = "Each design by its number, in the unit of the response" + (
        "; in %: by how much it grows, for its logarithm is analysed." if known.logarithms else "."
    )
    return Table("budget_sizes", "Smallest effects detected", columns, tuple(rows), (note,))


def budget_json(found: Sequence[Offer], known: Known) -> dict[str, Any]:
    """Return the designs that fit a budget as JSON."""
    return {
        "sigma": known.sigmas,
        "sigma_of_logarithm": sorted(known.logarithms),
        "known": known.words,
        "designs": [
            {
                "number": number,
                "design": offer.design,
                "runs": offer.runs,
                "replicates": offer.study.replicates,
                "fraction": offer.study.fraction,
                "hours": offer.hours,
                "detectable_per_sigma": dict(zip(("0.8", "0.9"), offer.detectable, strict=True)),
                "confounded": offer.confounded,
            }
            for number, offer in enumerate(found, start=1)
        ],
    }


def design_json(design: PlannedDesign) -> dict[str, Any]:
    """Return the report on a design as JSON values, with the structure of a regular fraction."""
    import msgspec

    from doe.views.json import without_masks

    keys, generators = design.runs.keys, design.generators

    def signed(terms: Sequence[SignedTerm]) -> list[dict[str, Any]]:
        return [{"term": term_name(t.mask, keys), "sign": t.sign} for t in terms]

    highest = min(design.order or telling_order(generators), len(keys))
    chains = alias_chains(generators, len(keys), highest) if design.regular else ()
    facts: dict[str, Any] = without_masks(msgspec.to_builtins(design.facts))
    return facts | {
        "resolution": resolution(generators),
        "defining_relation": signed(defining_relation(generators)),
        "word_length_pattern": list(word_length_pattern(generators, len(keys))),
        "aliases": [signed(chain) for chain in chains if len(chain) > 1],
    }


def telling_order(generators: Sequence[Generator]) -> int:
    """Return the order up to which aliases must be shown for the first ones to appear."""
    return max(2, ((resolution(generators) or 0) + 1) // 2)


def _relation(generators: Sequence[Generator], keys: Sequence[str]) -> tuple[str, ...]:
    shortest = resolution(generators)
    if shortest is None:
        return ("Full factorial: nothing is aliased.",)
    words = " = ".join(
        ("−" if w.sign < 0 else "") + term_name(w.mask, keys) for w in defining_relation(generators)
    )
    pattern = word_length_pattern(generators, len(keys))
    return (
        f"Resolution {roman(shortest)}; generators {format_generators(generators, keys)}",
        f"Defining relation I = {words}",
        f"Words of length 3, 4, …: {', '.join(map(str, pattern))}",
    )
