"""Response surfaces: published answers, the optimum within limits, its region, the path."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from benchmarks.surfaces import ERRORS, PLANS, covered
from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset, FactorColumn, Limits, Runs, runs_at
from doe.analysis.options import AnalysisOptions
from doe.analysis.surface import Surface
from doe.analysis.tables import TableOptions, table_datasets
from doe.errors import DoeError

CHEM = """Time,Temp,Block,Yield
80,170,B1,80.5
80,180,B1,81.5
90,170,B1,82
90,180,B1,83.5
85,175,B1,83.9
85,175,B1,84.3
85,175,B1,84
85,175,B2,79.7
85,175,B2,79.8
85,175,B2,79.5
92.07,175,B2,78.4
77.93,175,B2,75.6
85,182.07,B2,78.5
85,167.93,B2,77"""
"""Chemical reactor in two blocks: `ChemReact` of R's rsm, Myers and others (2009), table 7.6."""
HELI_Y = (
    *(367, 369, 374, 370, 372, 355, 397, 377, 350, 373, 358, 363, 344, 355, 370, 362),
    *(377, 375, 361, 364, 355, 373, 361, 360, 380, 360, 370, 368, 369, 366),
)
"""Flight times of paper helicopters: `heli` of R's rsm, Box, Hunter and Hunter (2005), 12.5."""
HELI_CODING = {"A": (12.4, 0.6), "R": (2.52, 0.26), "W": (1.25, 0.25), "L": (2.0, 0.5)}
NIST_X = (
    *((1, 0), (0, 0), (0.71, -0.71), (-0.71, 0.71), (-1, 0), (0, 0), (-0.71, -0.71)),
    *((0, -1), (0.71, 0.71), (0, 1), (0, 0)),
)
NIST_Y = (4.6, 6.2, 3.4, 6.9, 7.3, 6.4, 8.6, 6.3, 5.1, 5.4, 5.0)
"""Uniformity of tungsten deposition: NIST/SEMATECH e-Handbook, 5.4.7.3."""


def frame_of(text: str) -> pd.DataFrame:
    lines = [line.split(",") for line in text.splitlines()]
    return pd.DataFrame(lines[1:], columns=lines[0])


def analysis_of(
    frame: pd.DataFrame,
    factors: tuple[str, ...],
    response: str,
    block: str | None = None,
    goal: str | None = "max",
    **options: object,
) -> Analysis:
    table = TableOptions(factors=factors, block=block, goal=goal)
    (data,) = table_datasets(frame, table, [response])
    return analyze(data, AnalysisOptions(error="residual", **options))  # type: ignore[arg-type]


def surface_of(analysis: Analysis) -> Surface:
    assert analysis.surface is not None
    return analysis.surface


def heli() -> pd.DataFrame:
    cube = [p[::-1] for p in product((-1, 1), repeat=4)]
    axial = [tuple(s * 2 * (j == i) for j in range(4)) for i in range(4) for s in (-1, 1)]
    coded = [*cube, *[(0,) * 4] * 2, *axial, *[(0,) * 4] * 4]
    columns = {
        key: [round(centre + unit * x[i], 6) for x in coded]
        for i, (key, (centre, unit)) in enumerate(HELI_CODING.items())
    }
    return pd.DataFrame({**columns, "block": [1] * 18 + [2] * 12, "ave": HELI_Y})


# Published answers --------------------------------------------------------------------------------


def test_chem_react_as_rsm_prints_it() -> None:
    analysis = analysis_of(frame_of(CHEM), ("Time", "Temp"), "Yield", "Block")
    surface = surface_of(analysis)
    printed = {
        "Time": (0.932541, 0.057699, 16.162, 8.444e-07),
        "Temp": (0.577712, 0.057699, 10.012, 2.122e-05),
        "Time:Temp": (0.125000, 0.081592, 1.532, 0.1694),
        "Time^2": (-1.308555, 0.060064, -21.786, 1.083e-07),
        "Temp^2": (-0.933442, 0.060064, -15.541, 1.104e-06),
    }
    known = {c.term: c for c in surface.coefficients}
    for term, (estimate, se, t, p) in printed.items():
        assert round(known[term].estimate, 6) == estimate
        assert round(known[term].se or 0, 6) == se
        assert known[term].t == pytest.approx(t, abs=1e-3)
        assert known[term].p == pytest.approx(p, rel=1e-3)
    assert known["I"].estimate == pytest.approx(84.095427 - 4.457530 / 2, abs=2e-6)
    assert surface.kind == "maximum"
    assert surface.inside
    assert surface.stationary == pytest.approx({"Time": 86.86148, "Temp": 176.67190}, abs=1e-3)
    assert surface.eigenvalues == pytest.approx((-0.9233027, -1.3186949), abs=5e-8)
    directions = [tuple(axis.direction.values()) for axis in surface.axes]
    assert directions[0] == pytest.approx((0.1601375, 0.9870947), abs=5e-8)
    assert directions[1] == pytest.approx((0.9870947, -0.1601375), abs=5e-8)
    rows = {row.source: row for row in analysis.anova.rows}
    assert rows["Block"].ss == pytest.approx(69.531429, abs=1e-6)
    assert rows["Error"].ss == pytest.approx(0.186405, abs=1e-6)
    assert rows["Error"].df == 7
    assert [(u.centre, u.unit) for u in surface.units] == [(85.0, 5.0), (175.0, 5.0)]


def test_lack_of_fit_of_chem_react_against_pure_error() -> None:
    table = TableOptions(factors=("Time", "Temp"), block="Block", goal="max")
    (data,) = table_datasets(frame_of(CHEM), table, ["Yield"])
    rows = {row.source: row for row in analyze(data).anova.rows}
    lack = rows["Lack of fit"]
    assert (lack.df, rows["Error"].df) == (3, 4)
    assert lack.ss == pytest.approx(0.053071, abs=1e-6)
    assert lack.f == pytest.approx(0.53071, abs=1e-5)
    assert lack.p == pytest.approx(0.68509, abs=1e-5)
    assert rows["Error"].ss == pytest.approx(0.133333, abs=1e-6)


def test_heli_as_rsm_prints_it() -> None:
    analysis = analysis_of(heli(), ("A", "R", "W", "L"), "ave", "block")
    surface = surface_of(analysis)
    assert surface.kind == "saddle"
    assert surface.eigenvalues == pytest.approx(
        (3.258222, -1.198324, -3.807935, -4.651963), abs=5e-7
    )
    coded = (0.8607107, -0.3307115, -0.8394866, -0.1161465)
    own = {
        key: centre + unit * x
        for (key, (centre, unit)), x in zip(HELI_CODING.items(), coded, strict=True)
    }
    assert surface.stationary == pytest.approx(own, rel=1e-5)
    known = {c.term: c for c in surface.coefficients}
    for term, estimate, t in (
        *(("A", -0.083333, -0.1309120), ("R", 5.083333, 7.9856341), ("L", -6.083333, -9.5565785)),
        *(("AR", -2.875, -3.6876784), ("AL", 4.375, 5.6116845), ("RW", 4.625, 5.9323522)),
        *(("A^2", -2.0375, -3.3739386), ("W^2", -2.5375, -4.2018990), ("L^2", -0.1625, -0.2690871)),
    ):
        assert known[term].estimate == pytest.approx(estimate, abs=1e-6)
        assert known[term].t == pytest.approx(t, abs=1e-6)


def test_second_order_example_of_montgomery() -> None:
    """Yield in one block: Montgomery's central composite example, Design and Analysis of
    Experiments, chapter 11; its ANOVA also in ReliaWiki's reference examples. What is not printed
    there is computed from the normal equations.
    """
    x = [(80, 170), (80, 180), (90, 170), (90, 180), *[(85, 175)] * 5]
    x += [(92.07, 175), (77.93, 175), (85, 182.07), (85, 167.93)]
    y = (76.5, 77, 78, 79.5, 79.9, 80.3, 80, 79.7, 79.8, 78.4, 75.6, 78.5, 77)
    frame = pd.DataFrame(x, columns=["time", "temp"]).assign(y=y)
    analysis = analysis_of(frame, ("time", "temp"), "y")
    surface = surface_of(analysis)
    printed = {"time": 7.92, "temp": 2.12, "time^2": 13.18, "temp^2": 6.97, "time:temp": 0.25}
    rows = {row.source: row.ss for row in analysis.anova.rows}
    found = {term: rows[term] for term in printed}
    assert found == pytest.approx(printed, abs=0.01)  # the book's axial runs are at √2
    a, b = (np.array(x) - (85, 175)).T / 5
    design = np.column_stack([np.ones(13), a, b, a * a, b * b, a * b])
    b0, *slopes, aa, bb, ab = np.linalg.solve(design.T @ design, design.T @ np.array(y))
    bends = np.array([[aa, ab / 2], [ab / 2, bb]])
    best = -np.linalg.solve(bends, slopes) / 2
    known = {c.term: c.estimate for c in surface.coefficients}
    expected = {"I": b0, "time": slopes[0], "temp": slopes[1], "time^2": aa, "temp^2": bb}
    assert known == pytest.approx(expected | {"time:temp": ab})
    assert surface.eigenvalues == pytest.approx(np.linalg.eigvalsh(bends)[::-1])
    assert surface.stationary_mean == pytest.approx(b0 + best @ slopes / 2)
    assert surface.stationary_mean == pytest.approx(80.21, abs=5e-3)
    assert surface.optimum is not None
    at = dict(zip(("time", "temp"), (85, 175) + 5 * best, strict=True))
    assert surface.optimum.levels == pytest.approx(at, abs=5e-3)
    assert [round(value) for value in at.values()] == [87, 177]


def test_nist_example_in_its_own_coding() -> None:
    """NIST codes the ends of the range as one unit, and the factorial points as 0.71."""
    frame = pd.DataFrame(NIST_X, columns=["pressure", "ratio"]).assign(uniformity=NIST_Y)
    analysis = analysis_of(frame, ("pressure", "ratio"), "uniformity", coding="range")
    known = {c.term: c for c in surface_of(analysis).coefficients}
    for term, estimate, se in (
        *(("I", 5.86613, 0.41773), ("pressure", -1.90967, 0.36103), ("ratio", -0.22408, 0.36103)),
        *(("pressure:ratio", 1.68617, 0.71766), ("pressure^2", 0.13373, 0.60733)),
        ("ratio^2", 0.03373, 0.60733),
    ):
        assert known[term].estimate == pytest.approx(estimate, abs=6e-6), term
        assert known[term].se == pytest.approx(se, abs=6e-6), term
    assert analysis.sigma == pytest.approx(0.7235, abs=5e-5)
    assert analysis.r2 == pytest.approx(0.8716, abs=5e-5)


def test_a_rising_ridge() -> None:
    """CO by ethanol and air-fuel ratio: `codata` of R's rsm, Box, Hunter and Hunter (2005)."""
    y = (61.9, 65.6, 80.9, 78, 89.7, 93.8, 72.1, 67.3, 80.1, 81.4, 77.8, 74.8)
    y += (66.4, 68.2, 68.9, 66, 60.2, 57.9)
    x = [(a, b) for b in (-1, 0, 1) for a in (-1, -1, 0, 0, 1, 1)]
    frame = pd.DataFrame(x, columns=["e", "r"]).assign(y=y)
    surface = surface_of(analysis_of(frame, ("e", "r"), "y", terms=("quadratic",)))
    assert surface.kind == "ridge"


# The optimum within limits ------------------------------------------------------------------------


def runs_of(
    factors: tuple[FactorColumn, ...], points: list[tuple[object, ...]], limits: object
) -> Runs:
    columns = {f.key: [p[i] for p in points] for i, f in enumerate(factors)}
    index, position = runs_at(columns, factors)  # type: ignore[arg-type]
    return Runs(factors, index, position, limits=limits)  # type: ignore[arg-type]


def two_numbers(
    limits: Limits | None, goal: str = "max", noise: float = 0.1, optimize: bool = False
) -> Analysis:
    """A 3 × 3 grid in a, b from 0 to 10 with its best at a = 8, b = 3, two runs each."""
    factors = tuple(FactorColumn(key, key, (0, 10), numeric=True) for key in "ab")
    points = [(a, b) for a in (0, 5, 10) for b in (0, 5, 10)] * 2
    rng = np.random.default_rng(3)
    sign = 1.0 if goal == "max" else -1.0
    y = np.array([-((a - 8.0) ** 2) - 2.0 * (b - 3.0) ** 2 for a, b in points]) * sign
    runs = runs_of(factors, points, limits)
    data = Dataset(runs, "y", y + noise * rng.standard_normal(len(y)), goal=goal)
    return analyze(data, AnalysisOptions(optimize=optimize))


def limits_of(**given: object) -> Limits:
    return Limits((False, False), (False, False), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_optimum_inside(goal: str) -> None:
    optimum = surface_of(two_numbers(None, goal)).optimum
    assert optimum is not None
    assert optimum.inside
    assert optimum.levels == pytest.approx({"a": 8.0, "b": 3.0}, abs=0.1)
    assert optimum.ci_low is not None
    assert optimum.ci_high is not None
    assert optimum.ci_low <= 0.0 < optimum.ci_high


def test_a_linear_constraint_holds_the_optimum() -> None:
    """The best of -(a-8)² - 2(b-3)² with a + b ≤ 8 is a = 6, b = 2 (Lagrange)."""
    limits = limits_of(weights=np.array([[1.0, 1.0]]), bounds=np.array([8.0]))
    optimum = surface_of(two_numbers(limits)).optimum
    assert optimum is not None
    assert not optimum.inside
    assert optimum.levels == pytest.approx({"a": 6.0, "b": 2.0}, abs=0.1)


def test_whole_numbers_and_listed_levels() -> None:
    whole = surface_of(two_numbers(Limits((True, True), (False, False)))).optimum
    assert whole is not None
    assert whole.levels == {"a": 8, "b": 3}
    listed = surface_of(two_numbers(Limits((False, False), (True, False)))).optimum
    assert listed is not None
    assert listed.levels["a"] == 10
    assert listed.levels["b"] == pytest.approx(3.0, abs=0.1)


def test_a_constraint_that_leaves_nothing() -> None:
    limits = limits_of(weights=np.array([[1.0, 1.0]]), bounds=np.array([-1.0]))
    with pytest.raises(DoeError, match="leave nothing"):
        two_numbers(limits, optimize=True)
    assert two_numbers(limits).surface is None


def test_more_coefficients_than_runs() -> None:
    frame = frame_of(CHEM).iloc[:5]
    with pytest.raises(DoeError, match="as many runs as coefficients"):
        analysis_of(frame, ("Time", "Temp"), "Yield", terms=("quadratic",), optimize=True)


def test_words_have_no_surface() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 4, "y": range(8)})
    with pytest.raises(DoeError, match="no factor of the model is numeric"):
        analysis_of(frame, ("a",), "y", optimize=True)


def with_words(limits: Limits | None) -> Analysis:
    """The best a depends on a word, and the best word is w2."""
    factors = (
        FactorColumn("a", "a", (0, 10), numeric=True),
        FactorColumn("w", "w", ("w0", "w1", "w2")),
    )
    points = [(a, w) for a in (0, 5, 10) for w in ("w0", "w1", "w2")] * 3
    rng = np.random.default_rng(5)
    best = {"w0": 2.0, "w1": 5.0, "w2": 7.0}
    y = [-((a - best[w]) ** 2) + 5.0 * ("w0", "w1", "w2").index(w) for a, w in points]
    runs = runs_of(factors, points, limits)
    options = AnalysisOptions(terms=("quadratic",))
    return analyze(Dataset(runs, "y", np.array(y) + rng.standard_normal(27), goal="max"), options)


def test_levels_of_words_are_searched_and_exclusions_respected() -> None:
    surface = surface_of(with_words(None))
    assert surface.optimum is not None
    assert surface.region is not None
    assert surface.optimum.levels["w"] == "w2"
    assert surface.at == {"w": "w2"}
    assert surface.optimum.levels["a"] == pytest.approx(7.0, abs=0.5)
    assert surface.region.levels["w"] == ("w2",)
    limits = Limits((False, False), (False, False), excluded=({1: 2},))
    allowed = surface_of(with_words(limits)).optimum
    assert allowed is not None
    assert allowed.levels["w"] == "w1"
    assert allowed.levels["a"] == pytest.approx(5.0, abs=0.5)


def test_a_nested_number_is_sought_where_it_matters() -> None:
    """gamma acts with the kernel rbf alone, and has its first level with the other."""
    factors = (
        FactorColumn("kernel", "kernel", ("linear", "rbf")),
        FactorColumn("gamma", "gamma", (0, 10), numeric=True),
    )
    points = [("rbf", g) for g in (0, 5, 10)] * 3 + [("linear", 0)] * 4
    y = [20.0 - (g - 6.0) ** 2 if k == "rbf" else 3.0 for k, g in points]
    noise = 0.1 * np.random.default_rng(1).standard_normal(len(y))
    nested = {1: (0, frozenset({0}))}
    limits = Limits((False, False), (False, False), nested=nested)
    data = Dataset(runs_of(factors, points, limits), "y", np.array(y) + noise, goal="max")
    analysis = analyze(data, AnalysisOptions(terms=("quadratic",)))
    optimum = surface_of(analysis).optimum
    assert optimum is not None
    assert optimum.levels["kernel"] == "rbf"
    assert optimum.levels["gamma"] == pytest.approx(6.0, abs=0.1)
    worst = surface_of(
        analyze(Dataset(data.runs, "y", -data.y, goal="max"), AnalysisOptions(terms=("quadratic",)))
    ).optimum
    assert worst is not None
    assert worst.levels in (
        {"kernel": "linear", "gamma": 0},
        {"kernel": "rbf", "gamma": 0},
    )


def test_the_region_of_the_optimum_is_smaller_with_less_noise() -> None:
    wide, narrow = (surface_of(two_numbers(None, noise=n)).region for n in (2.0, 0.1))
    assert wide is not None
    assert narrow is not None
    for key, best in (("a", 8.0), ("b", 3.0)):
        assert wide.low[key] < narrow.low[key] < best < narrow.high[key] < wide.high[key]


# Path and options ---------------------------------------------------------------------------------


def first_order() -> pd.DataFrame:
    """Yield by time and temperature: Montgomery's example of steepest ascent, chapter 11."""
    x = [(30, 150), (30, 160), (40, 150), (40, 160), *[(35, 155)] * 5]
    y = (39.3, 40.0, 40.9, 41.5, 40.3, 40.5, 40.7, 40.2, 40.6)
    return pd.DataFrame(x, columns=["time", "temp"]).assign(y=y)


def test_path_of_steepest_ascent_of_montgomery() -> None:
    """y = 40.44 + 0.775 x1 + 0.325 x2: five minutes a step take 2.1 degrees."""
    analysis = analysis_of(first_order(), ("time", "temp"), "y", optimize=True, terms=("linear",))
    surface = surface_of(analysis)
    assert surface.kind is None
    assert surface.stationary is None
    known = {c.term: c.estimate for c in surface.coefficients}
    assert (known["time"], known["temp"]) == pytest.approx((0.775, 0.325))
    steps = [tuple(point.levels.values()) for point in surface.path]
    expected = [(35 + 5 * i, 155 + 5 * i * 0.325 / 0.775) for i in range(6)]
    assert steps == [pytest.approx(point, rel=1e-5) for point in expected]
    means = [point.mean for point in surface.path]
    assert means[1] - means[0] == pytest.approx(0.775 + 0.325**2 / 0.775)


def test_a_path_ends_before_a_number_is_zero() -> None:
    frame = first_order().assign(time=lambda f: f.time - 29)
    surface = surface_of(analysis_of(frame, ("time", "temp"), "y", goal="min", optimize=True))
    assert [point.levels["time"] for point in surface.path] == [6.0, 1.0]


def test_no_surface_without_squares_unless_asked_for() -> None:
    assert analysis_of(first_order(), ("time", "temp"), "y").surface is None


def test_no_optimum_without_a_goal() -> None:
    analysis = analysis_of(frame_of(CHEM), ("Time", "Temp"), "Yield", "Block", goal=None)
    surface = surface_of(analysis)
    assert surface.optimum is None
    assert surface.region is None
    assert surface.kind == "maximum"


def test_named_models() -> None:
    frame = frame_of(CHEM)
    given = (frame, ("Time", "Temp"), "Yield", "Block")
    assert analysis_of(*given, terms=("linear",)).terms == ("Time", "Temp")
    full = analysis_of(*given, terms=("quadratic",)).terms
    assert full == analysis_of(*given).terms
    assert "Time^2" in full


def test_an_unknown_coding_is_refused() -> None:
    with pytest.raises(DoeError, match="coding 'axial' is not one of factorial, range"):
        AnalysisOptions(coding="axial")


@pytest.mark.slow
@pytest.mark.parametrize("draw", ERRORS)
def test_region_and_interval_cover_the_true_optimum(draw: str) -> None:
    """The short form of `benchmarks.surfaces`, seeded: no more than 5 of 30 are missed."""
    rates = covered(PLANS[2], draw, 30)
    assert rates.region >= 25 / 30
    assert rates.interval >= 25 / 30
