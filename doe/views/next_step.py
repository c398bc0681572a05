"""Next step from a response surface, in one sentence with a command."""

from __future__ import annotations

from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import significant
from doe.analysis.surface import Surface
from doe.numbers import about, cell_text
from doe.terms import level_text

FRESH = 5
"""Fresh seeds with which an optimum is confirmed."""


class NextStep(NamedTuple):
    """Next step, and the options of `doe plan` that do it in a study; empty for a new study."""

    sentence: str
    options: str

    def text(self, study: bool) -> str:
        """Return the sentence with the command of a study, or what to do with a table."""
        if not study:
            return f"{self.sentence} Run it, add the rows to the table and analyse it again."
        return f"{self.sentence} Try: doe plan {self.options or 'study.toml --out runs/next'}"


def next_step(analysis: Analysis) -> NextStep | None:
    """Return the next step; None where nothing is known of a surface or no goal is set."""
    surface = analysis.surface
    if surface is not None and surface.kind is not None and surface.optimum is not None:
        return _on_surface(analysis, surface)
    if analysis.goal is None or (surface is None and analysis.curvature is None):
        return None
    bend = analysis.curvature
    if bend is not None and significant(bend.p, analysis.alpha):
        p = cell_text(bend.p, "p")
        return NextStep(
            f"The response curves between the levels (p = {p}): axial points locate its optimum.",
            "--augment axial",
        )
    slopes = [
        test.term
        for test in analysis.tests
        if test.mask.bit_count() == 1
        and analysis.factors[test.mask.bit_length() - 1].numeric
        and significant(test.p_holm, analysis.alpha)
    ]
    if slopes:
        lead = "No curvature is shown" if bend is not None else "No run can show curvature"
        way = "ascent" if analysis.goal == "max" else "descent"
        return NextStep(
            f"{lead}, and {analysis.response} still changes along {', '.join(slopes)}: follow "
            f"the path of steepest {way}.",
            "--augment ascent",
        )
    return NextStep("No slope is distinguishable from noise: add a replicate.", "--augment 1")


def _on_surface(analysis: Analysis, surface: Surface) -> NextStep:
    lack = next((row for row in analysis.anova.rows if row.source == "Lack of fit"), None)
    optimum = surface.optimum
    assert optimum is not None
    if lack is not None and significant(lack.p, analysis.alpha):
        return NextStep(
            f"The surface does not fit (lack of fit, p = {cell_text(lack.p, 'p')}): take narrower "
            "ranges around its best point, or another scale of the response, before trusting it.",
            "",
        )
    where = ", ".join(
        f"{key} = {about(level) if isinstance(level, float) else level_text(level)}"
        for key, level in optimum.levels.items()
    )
    if optimum.inside:
        return NextStep(
            f"The optimum lies among the runs, at {where}: confirm it with fresh seeds.",
            f"--confirm {FRESH}",
        )
    ends = [
        key
        for key, level in optimum.levels.items()
        for factor in analysis.factors
        if factor.key == key
        and factor.numeric
        and level in (min(factor.levels), max(factor.levels))
    ]
    edge = f"the end of the range of {', '.join(ends)}" if ends else "the edge of the region"
    return NextStep(
        f"The best point, {where}, lies at {edge}: move the ranges that way, and plan again.", ""
    )
