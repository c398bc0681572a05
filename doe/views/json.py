"""The machine-readable form of an analysis: plain dictionaries, lists, numbers and None."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis
from doe.analysis.effects_by_response import EffectsByResponse
from doe.analysis.trade_off import TradeOff

Json = dict[str, Any]
MEAN_FIELDS = ("factor", "level", "mean", "se", "ci_low", "ci_high", "n")
LENTH_FIELDS = ("s0", "pse", "me", "sme", "me_t", "sme_t")
PARTS = (
    *("goal", "planned", "order", "terms", "tests", "transform", "response_scale", "mean"),
    *("differences", "combinations", "interactions", "parts", "curvature", "predictions"),
    *("inestimable", "missing", "best", "design", "random_blocks", "confirmation", "variation"),
    *("exact", "beats", "looks", "scales", "strata", "unit", "alpha", "doubted"),
)
"""What is below `diagnostics` under its own name."""


def to_plain(
    analysis: Analysis,
    family: EffectsByResponse | None = None,
    trade: TradeOff | None = None,
) -> Json:
    """Return the object that `doe analyze --json` prints for one response.

    It has the same keys for every design. What most readers want is at the top; every further
    analysis is below `diagnostics`, with `p_bh_all`, the p values adjusted over all responses of a
    family. Several responses have `pareto`, `within_limits` and `desirability` in common.
    """
    whole: Json = finite(msgspec.to_builtins(analysis))
    without_masks(whole)
    if analysis.surface is not None:
        whole["surface"].pop("polynomial")  # what charts are drawn from
    anova, lenth = whole["anova"], whole["half_normal"]["lenth"]
    diagnostics = whole["diagnostics"] | {
        **{name: whole[name] for name in PARTS},
        "levels": whole["factors"],
        "aliases": [" = ".join(chain) for chain in analysis.aliases],
        "anova_kind": anova["kind"],
        "anova_type2": anova["type2"],
        "balanced": anova["balanced"],
        "r2_adjusted": anova["r2_adjusted"],
        "r2_predicted": anova["r2_predicted"],
        "blocking": anova["blocking"],
        "error": anova["error"],
        "contrasts": [
            contrast
            for part in (*whole["half_normal"].get("further", ()), whole["half_normal"])
            for contrast in part["contrasts"]
        ],
        **whole["estimates"],
        **_family(analysis, family),
    }
    return {
        "response": whole["response"],
        "n": whole["n"],
        "factors": list(analysis.keys),
        "block": whole["block"],
        "transform": whole["transform"]["name"],
        "df_error": whole["df_error"],
        "sigma": whole["sigma"],
        "r2": whole["r2"],
        "effects": whole["effects"],
        "anova": anova["rows"],
        "lenth": None if lenth is None else {name: lenth[name] for name in LENTH_FIELDS},
        "levels": [{name: mean[name] for name in MEAN_FIELDS} for mean in whole["levels"]],
        "surface": whole["surface"],
        "diagnostics": diagnostics,
        "warnings": whole["warnings"],
        **_together(trade),
    }


def bounds_to_plain(bounds: CensoredAnalysis) -> Json:
    """Return what `doe analyze --json` prints for a response with limits such as >50."""
    whole: Json = finite(msgspec.to_builtins(bounds))
    return whole | {"factors": [factor.key for factor in bounds.factors]}


def _together(trade: TradeOff | None) -> Json:
    """Return what a response has in common with the others that it is weighed against."""
    if trade is None:
        return {}
    whole: Json = finite(msgspec.to_builtins(trade))
    return {name: whole[name] for name in ("pareto", "within_limits", "desirability")}


def without_masks(value: Any) -> Any:
    """Remove terms as values, which mean nothing outside, in place; their names stay."""
    if isinstance(value, dict):
        value.pop("mask", None)
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, (dict, list, tuple)):
            without_masks(item)
    return value


def _family(analysis: Analysis, family: EffectsByResponse | None) -> Json:
    """Return the p values of a response adjusted over all responses of its family."""
    if family is None:
        return {}
    at = family.responses.index(analysis.response)
    return {"p_bh_all": {row.term: row.p_bh[at] for row in family.rows}}


def finite(value: Any) -> Any:
    """Replace what JSON cannot say (NaN and infinities) by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
