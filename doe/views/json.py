"""The machine-readable form of an analysis: plain dictionaries, lists, numbers and None."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from doe.analysis.across import Across
from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis


def to_plain(analysis: Analysis | CensoredAnalysis, family: Across | None = None) -> dict[str, Any]:
    """The object that `doe analyze --json` prints for one response.

    What a study's consumer reads has names of its own at the top; every further analysis stands
    below `diagnostics`, with `p_bh_all`, the p values adjusted over all responses of a family.
    """
    if isinstance(analysis, CensoredAnalysis):
        bounds: dict[str, Any] = finite(msgspec.to_builtins(analysis))
        return bounds | {"factors": [factor.key for factor in analysis.factors]}
    whole: dict[str, Any] = finite(msgspec.to_builtins(analysis))
    lenth = whole["lenth"]
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
        **whole["estimates"],
    }
    if family is not None:
        at = family.responses.index(analysis.response)
        diagnostics["p_bh_all"] = {row.term: row.p_bh[at] for row in family.rows}
    return {
        "response": analysis.response,
        "n": analysis.n,
        "factors": [factor.key for factor in analysis.factors],
        "block": analysis.block,
        "transform": analysis.transform.name,
        "df_error": analysis.df_error,
        "sigma": analysis.sigma,
        "r2": analysis.r2,
        "effects": whole["effects"],
        "anova": whole["anova"]["rows"],
        "lenth": None
        if lenth is None
        else {name: lenth[name] for name in ("s0", "pse", "me", "sme", "me_t", "sme_t")},
        "diagnostics": diagnostics,
        "warnings": whole["warnings"],
    }


def finite(value: Any) -> Any:
    """Replace what JSON cannot say (NaN and infinities) by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
