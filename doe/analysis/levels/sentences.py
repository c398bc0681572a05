"""What the terms do, in one sentence each."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.levels.anova import TermTest
from doe.analysis.levels.effects import HalfNormal, numeric_parts
from doe.analysis.levels.fit import LevelFit
from doe.analysis.levels.means import level_differences, on_response_scale, term_means
from doe.analysis.pvalues import significant
from doe.analysis.scales import Scale
from doe.analysis.scales.log import ratio_of
from doe.numbers import cell_text, confidence
from doe.terms import factor_label, factors_in


def term_sentences(
    fit: LevelFit,
    tests: Sequence[TermTest],
    plot: HalfNormal,
    unit: str,
    alpha: float,
    scale: Scale,
) -> tuple[str, ...]:
    """One sentence for each term that is significant at false discovery rate `alpha`.

    A saturated design is told by Lenth's margins: one sentence for each contrast beyond them.
    """
    if fit.error is None:
        return _saturated_sentences(plot, unit, alpha)
    masks = {fit.matrix.name(mask): mask for mask in fit.matrix.terms}
    active = {masks[t.term]: t for t in tests if significant(t.p_bh, alpha)}
    sentences = []
    for mask, test in active.items():
        wider = [other for other in active if other != mask and other & mask == mask]
        if mask.bit_count() == 1:
            sentence = _main_sentence(fit, mask.bit_length() - 1, test, unit, alpha, scale)
        else:
            sentence = _interaction_sentence(fit, mask, test, unit, alpha, scale)
        if wider:
            numbers = sorted({i for other in wider for i in factors_in(other & ~mask)})
            others = [fit.matrix.layout.factors[i].key for i in numbers]
            sentence = f"{sentence}; what it does depends on {', '.join(others)}"
        sentences.append(f"{sentence}.")
    return tuple(sentences)


def _p(value: float) -> str:
    return f"p = {cell_text(value, 'p')}"


def _with_unit(value: float, unit: str) -> str:
    return f"{cell_text(value, 'short')} {unit}".strip()


def _main_sentence(
    fit: LevelFit, i: int, test: TermTest, unit: str, alpha: float, scale: Scale
) -> str:
    factor = fit.matrix.layout.factors[i]
    known = [d for d in level_differences(fit, i, alpha) if d.difference is not None]
    lead = f"{factor_label(factor.key, factor.name)} matters ({_p(test.p or 0.0)})"
    if not known:
        return lead
    widest = max(known, key=lambda d: abs(d.difference or 0.0))
    gap, low, high = (value or 0.0 for value in (widest.difference, widest.ci_low, widest.ci_high))
    top, bottom = widest.level, widest.other
    if gap < 0:
        gap, low, high, top, bottom = -gap, -high, -low, bottom, top
    among = "" if len(factor.levels) == 2 else ", the widest gap of its levels"
    shared = "" if widest.cells == widest.of else " over the combinations that both have"
    level = confidence(alpha)
    sentence = (
        f"{lead}: {top} is {_with_unit(gap, unit)} above {bottom}{shared}"
        f" ({level} interval {_with_unit(low, '')} to {_with_unit(high, unit)}){among}"
    )
    if scale.ratio:
        ratio, least, most = (cell_text(ratio_of(x), "short") for x in (gap, low, high))
        sentence = (
            f"{lead}: {top} is × {ratio} of {bottom}{shared} ({level} {least} to {most}){among}"
        )
    return sentence + _shape(fit, i, alpha)


def _shape(fit: LevelFit, i: int, alpha: float) -> str:
    """Straight or bent, of a numeric factor with three levels or more."""
    factor = fit.matrix.layout.factors[i]
    parts = {part.part: part.p for part in numeric_parts(fit, i, alpha)}
    quadratic, linear = parts.get("quadratic"), parts.get("linear")
    if quadratic is None or linear is None:
        return ""
    scale = " on its log scale" if factor.scale == "log" else ""
    if quadratic < alpha:
        return f"; it acts along a curve{scale} (quadratic part {_p(quadratic)})"
    return f"; a straight line{scale} is enough" if linear < alpha else ""


def _interaction_sentence(
    fit: LevelFit, mask: int, test: TermTest, unit: str, alpha: float, scale: Scale
) -> str:
    factors = [fit.matrix.layout.factors[i] for i in factors_in(mask)]
    names = [factor_label(factor.key, factor.name) for factor in factors]
    lead = (
        f"{' and '.join([', '.join(names[:-1]), names[-1]])} do not act on their own"
        f" ({test.term}, {_p(test.p or 0.0)})"
    )
    known = [m for m in term_means(fit, mask, alpha) if m.mean is not None and m.cells == m.of]
    if len(known) < 2:
        return lead
    known = list(on_response_scale(known, scale.back)) if scale.ratio else known
    low, high = (f(known, key=lambda m: m.mean or 0.0) for f in (min, max))
    kind = "geometric mean" if scale.ratio else "mean"
    return (
        f"{lead}: the {kind} runs from {_with_unit(low.mean or 0.0, unit)} at {low.level}"
        f" to {_with_unit(high.mean or 0.0, unit)} at {high.level}"
    )


def _saturated_sentences(plot: HalfNormal, unit: str, alpha: float) -> tuple[str, ...]:
    return tuple(
        f"{contrast.label} stands out ({_p(contrast.p)}, Lenth):"
        f" {_with_unit(contrast.value, unit)} on the scale of a two-level effect."
        for contrast in plot.contrasts
        if contrast.p is not None and contrast.p <= alpha
    )
