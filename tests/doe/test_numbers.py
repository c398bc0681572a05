"""How numbers are written in sentences."""

import math

import pytest

from doe.numbers import about, from_to, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.17963, "0.18"),
        (5.6234, "5.62"),
        (90.0, "90"),
        (1203.54, "1204"),
        (0.99987, "1"),
        (-0.030449, "\u22120.0304"),
        (1.5e-7, "1.5e-07"),
        (1.234e9, "1.23e+09"),
        (0.0, "0"),
        (math.inf, "∞"),
        (None, "–"),
    ],
)
def test_a_number_alone_has_three_figures(value, text):
    assert about(value) == text


@pytest.mark.parametrize(
    ("estimate", "texts"),
    [
        ((0.1796, 0.1629, 0.1964), ("0.180", "0.163", "0.196")),
        ((5.623, 4.41, 6.836), ("5.62", "4.41", "6.84")),
        ((1.196, 0.8987, 1.494), ("1.20", "0.90", "1.49")),
        ((597.0, 488.8, 705.2), ("597", "489", "705")),
        ((12345.0, 10123.0, 14567.0), ("12300", "10100", "14600")),
        ((100.3412, 100.3312, 100.3512), ("100.341", "100.331", "100.351")),
        ((-0.0004, -0.66, 0.66), ("0.000", "\u22120.660", "0.660")),
        ((3e-7, 1e-7, 5e-7), ("3e-07", "1e-07", "5e-07")),
        ((1.0, -math.inf, 2.0), ("1", "\u2212∞", "2")),
        ((4.0, None, None), ("4",)),
    ],
)
def test_an_estimate_has_no_more_digits_than_its_interval_knows(estimate, texts):
    assert with_interval(*estimate) == texts


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((11.18, 6.84), ("11.2", "6.8")),
        ((2.26, 6.18), ("2.3", "6.2")),
        ((5.62, 0.777), ("5.6", "0.78")),
        ((0.9124, 0.9341), ("0.912", "0.934")),
        ((120.4, 0.3776), ("120", "0.38")),
        ((-3.21, 0.0), ("\u22123.2", "0.0")),
        ((0.25, 0.25), ("0.25", "0.25")),
        ((0.0, math.inf), ("0", "∞")),
    ],
)
def test_two_means_have_the_figures_that_their_difference_has(values, texts):
    assert from_to(*values) == texts
