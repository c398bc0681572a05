"""No magnitude of the response matters, and nothing that is constant stops an analysis."""

from __future__ import annotations

import warnings

import msgspec
import numpy as np
import pytest
from factorial_tables import FILTRATION, PLASMA, study, table

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.errors import DoeError
from doe.views.tables.checks import box_meyer_table


def same(found: Analysis, reference: Analysis, factor: float) -> None:
    for one, other in zip(found.effects, reference.effects, strict=True):
        assert one.p == pytest.approx(other.p, rel=1e-9)
        assert one.t == pytest.approx(other.t, rel=1e-9)
        assert one.effect / factor == pytest.approx(other.effect, rel=1e-9, abs=1e-9)
        assert one.percent == pytest.approx(other.percent, rel=1e-9, abs=1e-12)
    assert found.best.among_best == reference.best.among_best
    for cell, peer in zip(found.best.cells, reference.best.cells, strict=True):
        assert cell.mean / factor == pytest.approx(peer.mean, rel=1e-9)


@pytest.mark.parametrize("factor", [1e-290, 1e-170, 1e-120, 1e120, 1e170, 1e290])
def test_answers_do_not_change_with_the_unit(factor: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = table("ABC", PLASMA)
        reference = study(frame, "ABC", block="day", robust=True, permutations=99)
        frame["y"] *= factor
        found = study(frame, "ABC", block="day", robust=True, permutations=99)
    same(found, reference, factor)
    assert found.sigma is not None
    assert found.sigma / factor == pytest.approx(reference.sigma, rel=1e-9)
    assert found.lenth is not None
    assert found.lenth.pse / factor == pytest.approx(reference.lenth.pse)  # type: ignore[union-attr]
    pairs = zip(found.diagnostics.findings, reference.diagnostics.findings, strict=True)
    assert all(a.p == (b.p and pytest.approx(b.p, rel=1e-6)) for a, b in pairs)
    plain = msgspec.to_builtins(found)["estimates"]["dispersion"]
    expected = msgspec.to_builtins(reference)["estimates"]["dispersion"]
    assert plain["lenth"]["pse"] == pytest.approx(expected["lenth"]["pse"])


@pytest.mark.parametrize("factor", [1e-180, 1e200])
def test_the_raw_scale_beside_the_logarithms_does_not_change_with_the_unit(factor: float) -> None:
    frame = table("ABC", PLASMA)
    reference = study(frame, "ABC", transform="log").scales
    frame["y"] *= factor
    found = study(frame, "ABC", transform="log").scales
    assert found is not None
    assert reference is not None
    for term, peer in zip(found.terms, reference.terms, strict=True):
        assert term.effect / factor == pytest.approx(peer.effect, rel=1e-9)  # type: ignore[operator]
        assert (term.p, term.log_p) == pytest.approx((peer.p, peer.log_p), rel=1e-9)
    assert found.r2 == pytest.approx(reference.r2)


def leaves(value: object, path: str = "") -> dict[str, float]:
    """Every number of a plain value, by its way there."""
    if isinstance(value, dict):
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(str(i), item) for i, item in enumerate(value)]
    else:
        return {path: float(value)} if isinstance(value, float) else {}
    return {k: v for key, item in pairs for k, v in leaves(item, f"{path}.{key}").items()}


def test_every_number_of_an_analysis_has_its_unit() -> None:
    # Scaled by 2^10 all numbers are computed; beyond 1e100 they are given back their unit.
    frame = table("ABC", PLASMA).assign(run_order=np.random.default_rng(0).permutation(16) + 1)
    frame.loc[3, "y"] = np.nan
    one, kilo, huge = (
        leaves(
            msgspec.to_builtins(
                study(frame.assign(y=frame["y"] * factor), "ABC", block="day", robust=True)
            )
        )
        for factor in (1.0, 2.0**10, 2.0**400)
    )
    assert one.keys() == kilo.keys() == huge.keys()
    for path, value in one.items():
        if "boxcox" in path or abs(value) < 1e-9:  # the likelihood moves by a constant
            continue
        power = round(np.log2(kilo[path] / value)) // 10
        assert kilo[path] == pytest.approx(value * 2.0 ** (10 * power), rel=1e-6), path
        assert huge[path] == pytest.approx(value * 2.0 ** (400 * power), rel=1e-6), path


def test_a_saturated_design_and_logarithms_at_any_magnitude() -> None:
    frame = table("ABCD", FILTRATION)
    reference, logs = study(frame, "ABCD"), study(frame, "ABCD", transform="log")
    tiny = frame.assign(y=frame["y"] * 1e-200)
    same(study(tiny, "ABCD"), reference, 1e-200)
    found = study(tiny, "ABCD", transform="log")
    assert [e.effect for e in found.effects] == pytest.approx([e.effect for e in logs.effects])
    power = study(frame, "ABCD", transform="boxcox", order=2).transform.exponent
    assert power is not None
    assert power < 0
    assert study(tiny, "ABCD", transform="boxcox", order=2).transform.exponent == power
    large = frame.assign(y=frame["y"] * 1e250)  # whose powers are all the same number
    with pytest.raises(DoeError, match="another unit"):
        study(large, "ABCD", transform="boxcox", order=2)


def test_values_that_blocks_alone_explain() -> None:
    frame = table("ABC", np.repeat([3.0, 8.0], 8))
    found = study(frame, "ABC", block="day")
    assert found.get(BoxMeyer) is None
    assert all(e.effect == pytest.approx(0) for e in found.effects)
    assert all(e.p is None or e.p > 0.05 for e in found.effects)


def test_sets_of_factors_that_are_nearly_as_probable_are_all_named() -> None:
    frame = table("AD", [0, 2, 1, 3, -1, 1, 0, 3, -1, 2], [0, 3] * 5)  # D goes with A
    analysis = study(frame, "AD")
    found = analysis.get(BoxMeyer)
    assert found is not None
    assert found.rivals == 2
    assert {found.models[0].factors, found.models[1].factors} == {("A",), ("D",)}
    shown = box_meyer_table(analysis)
    assert shown is not None
    assert "Most probable: A (42%), D (42%)." in shown.notes[0]
    rows = [r for r in range(16) if r.bit_count() % 2]  # AB = -CD, and noise on A to D
    rng = np.random.default_rng(0)
    y = [10.0 * (r >> 2 & 1 == r >> 3) + 0.01 * rng.normal() for r in rows]
    shown = box_meyer_table(study(table("ABCD", y, rows), "ABCD"))
    assert shown is not None
    assert "A+B (" in shown.notes[0]
    assert "C+D (" in shown.notes[0]
