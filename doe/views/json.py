"""The machine-readable form of an analysis: plain dictionaries, lists, numbers and None."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from doe.analysis.across import Across
from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis
from doe.analysis.response import ResponseAnalysis

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


Json = dict[str, Any]


def to_plain(analysis: ResponseAnalysis | CensoredAnalysis, family: Across | None = None) -> Json:
    """The object that `doe analyze --json` prints for one response.

    What a study's consumer reads has names of its own at the top; every further analysis stands
    below `diagnostics`, with `p_bh_all`, the p values adjusted over all responses of a family.
    """
    whole: Json = finite(msgspec.to_builtins(analysis))
    if isinstance(analysis, CensoredAnalysis):
        return whole | {"factors": [factor.key for factor in analysis.factors]}
    if not isinstance(analysis, Analysis):
        return _levels_plain(analysis, whole, family)
    diagnostics = whole["diagnostics"] | {
        "transform": whole["transform"],
        "response_scale": whole["response_scale"],
        "levels": whole["factors"],
        "inestimable": whole["inestimable"],
        "aliases": whole["aliases"],
        "r2_adjusted": analysis.anova.r2_adjusted,
        "r2_predicted": analysis.anova.r2_predicted,
        "anova_type2": whole["anova"]["type2"],
        "blocking": whole["anova"]["blocking"],
        "error": analysis.anova.error,
        "missing": whole["missing"],
        "best": whole["best"],
        "confirmation": whole["confirmation"],
        **{name: whole[name] for name in ("variation", "beats") if whole[name]},
        **whole["estimates"],
        **_family(analysis, family),
    }
    return {
        **_top(whole, whole["lenth"]),
        "diagnostics": diagnostics,
        "warnings": whole["warnings"],
    }


def _top(whole: Json, lenth: Json | None) -> Json:
    """What every analysis has, under the names that it is read by."""
    return {
        "response": whole["response"],
        "n": whole["n"],
        "factors": [factor["key"] for factor in whole["factors"]],
        "block": whole["block"],
        "transform": whole["transform"]["name"],
        "df_error": whole["df_error"],
        "sigma": whole["sigma"],
        "r2": whole["r2"],
        "effects": whole["effects"],
        "anova": whole["anova"]["rows"],
        "lenth": None
        if lenth is None
        else {name: lenth[name] for name in ("s0", "pse", "me", "sme", "me_t", "sme_t")},
    }


def _family(analysis: ResponseAnalysis, family: Across | None) -> Json:
    """The p values of a response adjusted over all responses of its family."""
    if family is None:
        return {}
    at = family.responses.index(analysis.response)
    return {"p_bh_all": {row.term: row.p_bh[at] for row in family.rows}}


MEAN_FIELDS = ("factor", "level", "mean", "se", "ci_low", "ci_high", "n")
LEVEL_PARTS = (
    *("differences", "combinations", "parts", "curvature", "best", "permutations"),
    *("random_blocks", "design", "sentences"),
)
"""What stands below `diagnostics` under its own name."""


def _levels_plain(analysis: LevelAnalysis, whole: Json, family: Across | None) -> Json:
    """The object of factors with levels: the same names, and `levels`, the mean of each."""
    top = _top(whole, whole["half_normal"]["lenth"])
    diagnostics = {
        "levels": whole["factors"],
        "goal": analysis.goal,
        "terms": whole["terms"],
        "tests": whole["tests"],
        "anova_kind": analysis.anova.kind,
        "anova_type3": whole["anova"]["type3"],
        "balanced": analysis.anova.balanced,
        "r2_adjusted": analysis.anova.r2_adjusted,
        "r2_predicted": analysis.anova.r2_predicted,
        "error": analysis.anova.error,
        "transform": whole["transform"],
        "response_scale": whole["response_scale"],
        "mean": whole["mean"],
        **{name: whole[name] for name in LEVEL_PARTS},
        "contrasts": whole["half_normal"]["contrasts"],
        **({"variation": whole["variation"]} if whole["variation"] else {}),
        **_family(analysis, family),
    }
    levels = [{name: mean[name] for name in MEAN_FIELDS} for mean in whole["levels"]]
    return {**top, "levels": levels, "diagnostics": diagnostics, "warnings": whole["warnings"]}


def finite(value: Any) -> Any:
    """Replace what JSON cannot say (NaN and infinities) by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
