"""The study of examples/tuning analyses to what its README says."""

import math
from pathlib import Path

import pytest

import doe

RUNS = Path(__file__).parents[1] / "examples" / "tuning" / "runs"


def test_the_committed_runs_give_the_stated_findings():
    results = doe.analyze(RUNS / "tuning")
    effects = results["error"].effects.set_index("term")["effect"]
    assert results["error"].analysis.n == 28
    assert math.exp(effects["width"]) == pytest.approx(0.50, abs=0.01)
    assert math.exp(effects["batch"]) == pytest.approx(1.75, abs=0.01)
    wanted = results.trade_off.desirability
    assert wanted.model.config == "0.05 · 21 · 30 · 0.5 · 1e-06 · 0.0"
    assert wanted.model.means[0].mean == pytest.approx(1.94, abs=0.01)
    assert wanted.configs[0].config == "0.158114 · 23 · 64 · 0.25 · 1e-05 · 0.1"
    assert {point.place for point in results.trade_off.pareto} == {"undecided"}
    fresh = doe.analyze(RUNS / "tuning-confirm")
    found = {
        d.config: (round(d.overall, 2), round(d.means[0].mean, 1))
        for d in fresh.trade_off.desirability.configs
    }
    assert found == {"second_run": (0.97, 1.7), "best_run": (0.92, 2.3), "optimum": (0.75, 3.3)}
    assert {p.config for p in fresh.trade_off.pareto if p.place == "front"} == {"second_run"}
