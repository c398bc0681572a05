"""A short calibration of small designs; `make calibrate` has them all."""

from __future__ import annotations

from benchmarks.calibrate import DOCUMENT, ERRORS, PLANS, RATES, measured, outside

COUNT = 60


def test_rates_of_a_small_design_stay_in_their_bands() -> None:
    rates = measured(PLANS[0], "normal", COUNT)
    assert len(rates) >= 15
    assert [name for name, rate in rates.items() if outside(name, rate, COUNT)] == []
    assert 0.2 < rates["A after Holm"] < 0.9


def test_rates_in_blocks_with_skewed_errors_stay_in_their_bands() -> None:
    rates = measured(PLANS[1], "exponential", COUNT)
    effects = ("p of an inert term below 0.05", "any inert term after Holm", "share of the blocks")
    selected = ("a true best configuration stays among the best", "interval of an effect")
    for name in (*effects, *selected):
        assert not outside(name, rates[name], COUNT), (name, rates[name])


def test_a_rate_that_is_off_is_seen() -> None:
    assert outside("any inert term after Holm", 0.20, COUNT)
    assert outside("interval of an effect", 0.78, COUNT)
    assert not outside("interval of an effect", 1.0, COUNT)


def test_the_document_has_every_rate_for_every_kind_of_error() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    part = text[text.index("<!-- calibration -->") : text.index("<!-- end of calibration -->")]
    assert all(f"| {name} |" in part for name in RATES)
    assert all(f" {draw} |" in part for draw in ERRORS)
