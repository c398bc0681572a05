"""Worked examples of the textbooks, to the digits that they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factorial_tables import (
    CATAPULT,
    FILTRATION,
    MOULDED,
    OXIDE,
    PILOT,
    PLASMA,
    REACTOR,
    THREE_BLOCKS,
    WELDS,
    by_term,
    study,
    table,
)
from typer.testing import CliRunner

from doe.analysis.best import critical_value, pair_reach, with_the_best
from doe.analysis.lenth import critical_values, critical_values_t
from doe.cli import app

R_MISSING = {
    "A": (12.09375, 19.230184606, 3.07120366e-04),
    "B": (2.84375, 4.521826354, 2.02255212e-02),
    "C": (3.65625, 5.813776741, 1.01314239e-02),
    "D": (6.03125, 9.590247103, 2.40568195e-03),
    "AC": (-8.375, -10.528034298, 1.83020670e-03),
    "AD": (9.0, 11.313708499, 1.48106529e-03),
    "CD": (-1.25, -1.571348403, 2.14138793e-01),
}
R_BLOCK_SS = 101.1875


def test_plasma_etch_effects_sums_of_squares_and_tests() -> None:
    found = study(table("ABC", PLASMA), "ABC")
    effects = by_term(found)
    terms = ["A", "B", "AB", "C", "AC", "BC", "ABC"]
    assert [e.term for e in found.effects] == terms
    assert [effects[t].effect for t in terms] == pytest.approx(
        [-101.625, 7.375, -24.875, 306.125, -153.625, -2.125, 5.625], rel=1e-12
    )
    assert [effects[t].coef * 2 for t in terms] == [effects[t].effect for t in terms]
    assert [effects[t].ss for t in terms] == pytest.approx(
        [41310.5625, 217.5625, 2475.0625, 374850.0625, 94402.5625, 18.0625, 126.5625], rel=1e-12
    )
    rows = {row.source: row for row in found.anova.rows}
    assert [rows[t].f for t in terms] == pytest.approx(
        [18.339, 0.0966, 1.0988, 166.41, 41.909, 0.008, 0.0562], rel=3e-3
    )
    assert [effects[t].p for t in terms] == pytest.approx(
        [0.00268, 0.764, 0.325, 1.23e-6, 1.93e-4, 0.931, 0.819], rel=3e-3
    )
    assert (rows["Error"].ss, rows["Error"].df) == (pytest.approx(18020.5), 8)
    assert rows["Total"].ss == pytest.approx(531420.9375, rel=1e-12)


def test_plasma_etch_without_its_last_run() -> None:
    frame = table("ABC", PLASMA)
    frame.loc[15, "y"] = np.nan
    found = study(frame, "ABC")
    effects = by_term(found)
    rows = {row.source: row for row in found.anova.rows}
    assert (rows["Error"].ss, rows["Error"].df) == (pytest.approx(9440), 7)
    assert effects["A"].effect == pytest.approx(-118)
    assert effects["A"].t == pytest.approx(-6.059, abs=5e-4)
    assert rows["A"].ss == pytest.approx(49507.56, abs=5e-3)
    assert effects["C"].effect == pytest.approx(289.75)
    assert effects["C"].t == pytest.approx(14.878, abs=5e-4)
    assert effects["AC"].effect == pytest.approx(-170)
    assert effects["AC"].t == pytest.approx(-8.729, abs=5e-4)


def test_filtration_rate_effects_and_lenth() -> None:
    found = study(table("ABCD", FILTRATION), "ABCD", goal="max")
    assert [e.effect for e in found.effects] == pytest.approx(
        [
            *(21.625, 3.125, 0.125, 9.875, -18.125, 2.375, 1.875, 14.625),
            *(16.625, -0.375, 4.125, -1.125, -1.625, -2.625, 1.375),
        ],
        rel=1e-12,
    )
    assert found.lenth is not None
    assert (found.lenth.s0, found.lenth.pse) == (3.9375, 2.625)
    assert found.lenth.me_t == pytest.approx(6.748, abs=5e-4)
    assert found.lenth.sme_t == pytest.approx(13.699, abs=5e-4)


def test_filtration_rate_in_two_blocks_confounded_with_abcd() -> None:
    plain = table("ABCD", FILTRATION)
    sign = np.prod(2 * plain[list("ABCD")].to_numpy() - 1, axis=1)
    shifted = plain.assign(y=plain["y"] - 20 * (sign > 0), day=1 + (sign > 0))
    before, after = by_term(study(plain, "ABCD")), by_term(study(shifted, "ABCD"))
    changed = [t for t in before if abs(before[t].effect - after[t].effect) > 1e-9]
    assert changed == ["ABCD"]
    assert after["ABCD"].effect == pytest.approx(-18.625)
    assert after["ABCD"].ss == pytest.approx(1387.5625)
    blocked = study(shifted, "ABCD", block="day")
    assert blocked.inestimable == ("ABCD",)
    assert blocked.anova.rows[0].source == "Block"
    assert blocked.anova.rows[0].ss == pytest.approx(1387.5625)
    assert blocked.anova.rows[0].f is None


def test_two_factors_in_three_blocks() -> None:
    blocked = study(table("AB", THREE_BLOCKS), "AB", block="day")
    rows = {row.source: row for row in blocked.anova.rows}
    assert [row.source for row in blocked.anova.rows] == ["Block", "A", "B", "AB", "Error", "Total"]
    assert rows["Block"].ss == pytest.approx(6.5)
    assert [rows[t].ss for t in ("A", "B", "AB")] == pytest.approx([208.333, 75, 8.333], rel=1e-4)
    assert (rows["Error"].ss, rows["Error"].df) == (pytest.approx(24.833, abs=5e-4), 6)
    assert [rows[t].f for t in ("A", "B", "AB")] == pytest.approx([50.34, 18.12, 2.013], rel=3e-4)
    assert [rows[t].p for t in ("A", "B", "AB")] == pytest.approx(
        [0.000394, 0.00534, 0.2057], rel=1e-3
    )
    plain = {row.source: row for row in study(table("AB", THREE_BLOCKS), "AB").anova.rows}
    assert plain["Error"].ss == pytest.approx(31.333, abs=5e-4)
    assert [plain[t].f for t in ("A", "B", "AB")] == pytest.approx([53.19, 19.15, 2.128], rel=3e-4)


def test_reactor() -> None:
    found = study(table("ABCDE", REACTOR), "ABCDE", goal="max")
    effects = by_term(found)
    assert [effects[t].effect for t in ("B", "BD", "DE", "D", "E")] == [
        19.5,
        13.25,
        -11,
        10.75,
        -6.25,
    ]
    assert found.lenth is not None
    assert found.lenth.pse == 1.3125
    assert found.lenth.me_t == pytest.approx(2.912, abs=5e-4)
    assert found.lenth.sme_t == pytest.approx(5.536, abs=5e-4)


def test_pilot_plant() -> None:
    found = study(table("TCK", PILOT), "TCK", goal="max")
    assert {e.term: e.effect for e in found.effects} == {
        "T": 23, "C": -5, "TC": 1.5, "K": 1.5, "TK": 10, "CK": 0, "TCK": 0.5,
    }  # fmt: skip
    assert found.lenth is not None
    assert found.lenth.pse == 2.25


@pytest.mark.parametrize(
    ("m", "me_t", "me", "sme_t", "sme"),
    [
        (7, 3.764, 2.309, 9.008, 4.796),
        (15, 2.571, 2.164, 5.219, 4.281),
        (31, 2.218, 2.060, 4.218, 3.897),
        (63, 2.080, 2.014, 3.906, 3.777),
    ],
)
def test_multipliers_of_lenth(m: int, me_t: float, me: float, sme_t: float, sme: float) -> None:
    assert critical_values_t(m, 0.05) == pytest.approx((me_t, sme_t), abs=6e-4)
    # The table is itself simulated; its last digits carry the error of some thousand draws.
    assert critical_values(m, 0.05) == pytest.approx((me, sme), rel=0.015)


def test_filtration_rate_with_two_values_missing_agrees_with_r(tmp_path: Path) -> None:
    # summary(lm(y ~ (A + B + C + D)^2)) without runs 4 and 13 of Montgomery's table
    frame = table("ABCD", FILTRATION).drop(columns="day")
    path = tmp_path / "rate.csv"
    frame.assign(y=frame["y"].where(~frame.index.isin([3, 12]))).to_csv(path, index=False)
    found = command(path, "A,B,C,D", "--order", "2")
    effects = {e["term"]: e for e in found["effects"]}
    assert found["df_error"] == 3
    for term, (coef, t, p) in R_MISSING.items():
        assert effects[term]["coef"] == pytest.approx(coef, abs=5e-6)
        assert effects[term]["t"] == pytest.approx(t, abs=5e-4)
        assert effects[term]["p"] == pytest.approx(p, abs=5e-6)


def test_filtration_rate_in_four_blocks_agrees_with_r(tmp_path: Path) -> None:
    # Blocks by the signs of ABD and ACD, which confound BC as well: anova(lm(y ~ block + A*B*C*D))
    frame = table("ABCD", FILTRATION)
    sign = 2 * frame[list("ABCD")] - 1
    first, second = sign["A"] * sign["B"] * sign["D"], sign["A"] * sign["C"] * sign["D"]
    path = tmp_path / "blocks.csv"
    frame.assign(day=(first > 0) + 2 * (second > 0)).to_csv(path, index=False)
    found = command(path, "A,B,C,D", "--block", "day")
    assert found["diagnostics"]["inestimable"] == ["BC", "ABD", "ACD"]
    rows = {row["source"]: row for row in found["anova"]}
    assert (rows["Block"]["df"], rows["Block"]["ss"]) == (3, pytest.approx(R_BLOCK_SS, abs=5e-5))
    assert rows["A"]["ss"] == pytest.approx(1870.5625)
    assert rows["AC"]["ss"] == pytest.approx(1314.0625)


def test_paint_hardness_compared_with_the_best() -> None:
    # Minitab StatGuide, one-way ANOVA, Hsu's MCB: it prints four means and two intervals. Six runs
    # each and S are not printed there; S is deduced from the second interval, so that only the
    # third one and the ends at zero are checked.
    means = np.array([14.733, 8.567, 12.983, 18.067])
    sigma = (14.5 - 9.5) / (critical_value(((0.5, 3),), 20, 0.05) * np.sqrt(2 / 6))
    low, high = with_the_best(means, pair_reach(np.full(4, 1 / 6), float(sigma), 20, 0.05)[0])
    assert low[2] == pytest.approx(-10.0833, abs=1e-3)
    assert high[[1, 2]].tolist() == [0.0, 0.0]
    assert (high[[0, 3]] > 0).all()
    assert (low[[0, 3]] < 0).all()


def test_sat_scores_compared_with_the_best(tmp_path: Path) -> None:
    # Hsu (1996), section 4.1.5: scores of 103, 31 and 122 students of computer science, engineering
    # and other majors, by mean and standard deviation. The limits are those that the documentation
    # of the Python package mcb gives for it; they were not compared with the book itself.
    groups = [(0, 0, 103, 619.0, 86.0), (1, 0, 31, 629.0, 67.0), (0, 1, 122, 575.0, 83.0)]
    parts = []
    for a, b, n, mean, deviation in groups:
        spread = np.linspace(-1.0, 1.0, n)
        scores = mean + deviation * spread / spread.std(ddof=1)
        parts.append(pd.DataFrame({"A": a, "B": b, "y": scores}))
    path = tmp_path / "sat.csv"
    pd.concat(parts).to_csv(path, index=False)
    found = command(path, "A,B", "--goal", "max", "--alpha", "0.10")
    assert found["df_error"] == 253
    assert found["sigma"] == pytest.approx(82.52, abs=5e-3)
    best = found["diagnostics"]["best"]
    assert best["critical"] == pytest.approx(1.505, abs=5e-4)
    limits = {cell["config"]: (cell["mcb_low"], cell["mcb_high"]) for cell in best["cells"]}
    assert limits["A0B0"] == pytest.approx((-35.43, 17.14), abs=5e-3)
    assert limits["A1B0"] == pytest.approx((-17.14, 35.43), abs=5e-3)
    assert limits["A0B1"] == pytest.approx((-78.97, 0.0), abs=5e-3)
    assert best["among_best"] == ["A1B0", "A0B0"]


# What the handbook prints of the distance and of its logarithm: coefficient, t and p of each term
# of the trial model and of the one that is kept, against all that the model leaves.
CATAPULT_TRIAL = {
    "none": """
    h 13.4844 4.062 0.01532   s -11.0781 -3.337 0.02891   b 19.4125 6.538 0.00283
    l 20.1406 6.067 0.00373   e 12.0469 3.629 0.02218     hs -2.7656 -0.833 0.45163
    hb 4.6406 1.398 0.23467   hl 4.7031 1.417 0.22950     he 0.1094 0.033 0.97529
    sb -3.1719 -0.955 0.39343 sl -1.1094 -0.334 0.75502   se 2.6719 0.805 0.46601
    bl 7.6094 2.292 0.08365   be 2.8281 0.852 0.44225     le 3.1406 0.946 0.39768
    """,
    "log": """
    h 0.25735 3.353 0.02849   s -0.24174 -3.150 0.03452   b 0.34880 5.081 0.00708
    l 0.39437 5.138 0.00680   e 0.26273 3.423 0.02670     hs -0.02582 -0.336 0.75348
    hb -0.02035 -0.265 0.80403 hl -0.01396 -0.182 0.86457 he -0.04873 -0.635 0.55999
    sb 0.00853 0.111 0.91686  sl 0.06775 0.883 0.42724    se 0.07955 1.036 0.35855
    bl 0.01499 0.195 0.85472  be -0.01152 -0.150 0.88794  le -0.01120 -0.146 0.89108
    """,
}
CATAPULT_KEPT = {
    "none": """
    h 13.484 4.237 0.00097    s -11.078 -3.481 0.00406    b 19.412 6.819 1.23e-05
    l 20.141 6.328 2.62e-05   e 12.047 3.785 0.00227      bl 7.609 2.391 0.03264
    """,
    "log": """
    h 0.25735 4.896 0.000236  s -0.24174 -4.599 0.000413  b 0.34880 7.419 3.26e-06
    l 0.39437 7.502 2.87e-06  e 0.26273 4.998 0.000195
    """,
}


def printed(text: str, units: float = 0.51) -> float:
    """Half a unit of the last digit that a number is printed with, and a little for rounding."""
    digits, _, exponent = text.partition("e")
    places = len(digits.partition(".")[2])
    return units * 10.0 ** (int(exponent or 0) - places)


ROUNDED = 1.1
"""The handbook's logarithms are themselves rounded: two coefficients are off by one unit."""


def catapult(directory: Path, *options: str) -> dict[str, Any]:
    """The analysis of all 20 runs, tested against what the model leaves."""
    path = directory / "catapult.csv"
    numbers = np.array(CATAPULT.split(), float).reshape(20, 6)
    pd.DataFrame(numbers, columns=["y", *"hsble"]).to_csv(path, index=False)
    return command(path, "h,s,b,l,e", *options)


def assert_printed(found: dict[str, Any], published: str) -> None:
    units = ROUNDED if found["transform"] == "log" else 0.51
    effects = {e["term"]: e for e in found["effects"]}
    words = published.split()
    assert sorted(effects) == sorted(words[::4])
    for term, coef, t, p in zip(words[::4], words[1::4], words[2::4], words[3::4], strict=True):
        assert effects[term]["coef"] == pytest.approx(float(coef), abs=printed(coef, units)), term
        assert effects[term]["t"] == pytest.approx(float(t), abs=printed(t, units)), term
        assert effects[term]["p"] == pytest.approx(float(p), abs=printed(p, units)), term


@pytest.mark.parametrize("transform", ["none", "log"])
def test_catapult_without_its_centre_runs(tmp_path: Path, transform: str) -> None:
    # They enter nothing but the coefficient of the bands, which have no middle.
    numbers = np.array(CATAPULT.split(), float).reshape(20, 6)
    path = tmp_path / "corners.csv"
    frame = pd.DataFrame(numbers, columns=["y", *"hsble"])
    frame[frame["h"] != 4].to_csv(path, index=False)
    found = command(path, "h,s,b,l,e", "--transform", transform)
    coefficients = {e["term"]: e["coef"] for e in found["effects"]}
    words = CATAPULT_TRIAL[transform].split()
    for term, coef in zip(words[::4], words[1::4], strict=True):
        if term != "b":
            assert coefficients[term] == pytest.approx(float(coef), abs=printed(coef, ROUNDED))
    assert found["diagnostics"]["aliases"][0] == "I = hsble"


@pytest.mark.parametrize(
    ("transform", "sigma", "r2", "adjusted"),
    [("none", "13.28", 0.9709, 0.8619), ("log", "0.307", 0.9564, 0.7927)],
)
def test_catapult_with_all_two_factor_interactions(
    tmp_path: Path, transform: str, sigma: str, r2: float, adjusted: float
) -> None:
    found = catapult(tmp_path, "--error", "residual", "--transform", transform)
    assert found["df_error"] == 4
    assert_printed(found, CATAPULT_TRIAL[transform])
    assert found["sigma"] == pytest.approx(float(sigma), abs=printed(sigma))
    assert found["r2"] == pytest.approx(r2, abs=5e-5)
    assert found["diagnostics"]["r2_adjusted"] == pytest.approx(adjusted, abs=5e-5)
    assert "4 rows with every factor but b at its middle level" in found["warnings"][0]


def test_catapult_with_the_terms_that_matter(tmp_path: Path) -> None:
    terms = ("--terms", "h,s,b,l,e,bl")
    found = catapult(tmp_path, *terms, "--error", "residual")
    assert_printed(found, CATAPULT_KEPT["none"])
    assert found["diagnostics"]["mean"]["mean"] == pytest.approx(57.537, abs=6e-4)
    assert found["diagnostics"]["mean"]["se"] == pytest.approx(2.847, abs=5e-4)
    rows = {row["source"]: row for row in found["anova"]}
    assert sum(rows[term]["ss"] for term in ("h", "s", "b", "l", "e", "bl")) == pytest.approx(
        22148.55, abs=5e-3
    )
    assert (rows["Error"]["df"], rows["Error"]["ss"]) == (13, pytest.approx(2106.99, abs=5e-3))
    assert found["warnings"][-1].endswith("F = 2.69 on 11 and 2 degrees of freedom, p = 0.3018.")
    assert found["r2"] == pytest.approx(0.9131, abs=5e-5)
    # The same sums of squares where the centre runs have a mean of their own
    rows = {row["source"]: row for row in catapult(tmp_path, *terms)["anova"]}
    lack = rows["Curvature"]["ss"] + rows["Lack of fit"]["ss"]
    assert (rows["Curvature"]["df"] + rows["Lack of fit"]["df"], lack) == (
        11,
        pytest.approx(1973.74, abs=5e-3),
    )
    assert (rows["Error"]["df"], rows["Error"]["ss"]) == (2, pytest.approx(133.25, abs=5e-3))


def test_logarithms_of_the_catapult_with_main_effects(tmp_path: Path) -> None:
    found = catapult(tmp_path, "--order", "1", "--transform", "log", "--error", "residual")
    assert_printed(found, CATAPULT_KEPT["log"])
    rows = {row["source"]: row for row in found["anova"]}
    assert sum(rows[term]["ss"] for term in "hsble") == pytest.approx(8.02079, abs=1.1e-5)
    assert (rows["Error"]["df"], rows["Error"]["ss"]) == (14, pytest.approx(0.61896, abs=5e-6))
    assert found["warnings"][-1].endswith("F = 3.37 on 12 and 2 degrees of freedom, p = 0.2514.")


def spreads(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Dispersion effects by term, the largest first."""
    effects = found["diagnostics"]["dispersion"]["effects"]
    return {e["term"]: e for e in sorted(effects, key=lambda e: -abs(e["effect"]))}


def test_oxide_thickness_dispersion_with_replicates(tmp_path: Path) -> None:
    # Effects on ln s² by lm in R. Montgomery finds none strong, A and BD being the ones to look at.
    path = tmp_path / "oxide.csv"
    cells = [run // 4 for run in range(64)]
    table("ABCD", OXIDE, cells).drop(columns="day").to_csv(path, index=False)
    found = spreads(command(path, "A,B,C,D"))
    expected = {"A": 0.824010646, "B": -0.803999969, "AD": 0.758419580, "BD": -1.125003847}
    assert {t: found[t]["effect"] for t in expected} == pytest.approx(expected, abs=5e-9)
    assert next(iter(found)) == "BD"
    assert all(effect["p_holm"] > 0.05 for effect in found.values())


def test_welds_dispersion_without_replicates(tmp_path: Path) -> None:
    # Location B and C, dispersion C, then I and H: ln s²(+)/s²(-) of resid(lm(y ~ B + C)) in R
    path = tmp_path / "welds.csv"
    words = WELDS.split()
    frame = pd.DataFrame([list(levels) for levels in words[::2]], columns=list("ABCDEFGHI"))
    frame.assign(y=words[1::2]).to_csv(path, index=False)
    found = command(path, "A,B,C,D,E,F,G,H,I", "--goal", "max")
    effects = {e["term"]: e for e in found["effects"]}
    assert (effects["B"]["effect"], effects["C"]["effect"]) == pytest.approx((2.15, -3.10))
    assert found["diagnostics"]["best"]["reduced"]["terms"] == ["B", "C"]
    largest = list(spreads(found).items())[:3]
    assert [(term, round(e["effect"], 4)) for term, e in largest] == [
        ("C", -2.9156),
        ("I", 2.1174),
        ("H", 1.8831),
    ]
    assert all(e["p"] is None for _, e in largest)


def test_moulding_dispersion_without_replicates(tmp_path: Path) -> None:
    # ln s²(+)/s²(-) of what A, B and AB leave: 2.50 for C (5.70 and 1.63), below 1 for all others
    path = tmp_path / "moulded.csv"
    frame = table("ABCD", MOULDED).drop(columns="day")
    frame["E"] = (frame["A"] + frame["B"] + frame["C"]) % 2
    frame["F"] = (frame["B"] + frame["C"] + frame["D"]) % 2
    frame.to_csv(path, index=False)
    found = command(path, "A,B,C,D,E,F", "--goal", "min", "--alpha", "0.001")
    assert found["diagnostics"]["best"]["reduced"]["terms"] == ["A", "B", "AB"]
    sizes = {term: e["effect"] for term, e in spreads(found).items()}
    assert sizes.pop("C") == pytest.approx(2.50, abs=5e-3)
    assert max(abs(size) for size in sizes.values()) < 1


def command(path: Path, factors: str, *options: str) -> dict[str, Any]:
    """What `doe analyze --json` prints for a table."""
    arguments = ["analyze", "--table", str(path), "--factors", factors, "-r", "y", "--json"]
    result = CliRunner().invoke(app, [*arguments, *options], catch_exceptions=False)
    found: dict[str, Any] = json.loads(result.stdout)
    return found
