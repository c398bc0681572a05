"""Format of numbers: the only place where they are rounded.

Terminal, LaTeX, CSV, HTML and sentences write through these functions, so that no two of them can
show different numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

Format = Literal[
    "text",
    "int",
    "num",
    "signed",
    "signed2",
    "fixed1",
    "fixed2",
    "fixed3",
    "about",
    "short",
    "brief",
    "level",
    "percent",
    "p",
    "stars",
    "bar",
    "spread1",
    "spread2",
    "capped",
]
"""Rules for raw values; spread1, spread2 and capped take a `Spread`."""


class Spread(NamedTuple):
    """A mean with its standard deviation; None if a single run gives none."""

    mean: float
    std: float | None


Value = str | int | float | bool | Spread | None

MISSING = "–"
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
"""Significance codes, as R prints them."""
CAPS = (50, 20, 10)
"""A capped mean above one of these is written as >50, >20 or >10."""


@lru_cache(maxsize=1 << 16, typed=True)  # page, LaTeX and terminal write the same cells
def cell_text(value: Value, form: Format) -> str:
    """Write one value by its column's rule; the only place where numbers are rounded."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Spread):
        return spread_text(value, form)
    if isinstance(value, str) or form == "text":
        return str(value)
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return minus(_number(float(value), form))


def confidence(alpha: float) -> str:
    """Write the confidence level of intervals in percent, ``95 %`` or ``99.9 %``."""
    return f"{100.0 * (1.0 - alpha):.12g} %"


def share_text(share: float) -> str:
    """Write a share in whole percent, ``12%``."""
    return f"{100.0 * share:.0f}%"


def _number(value: float, form: Format) -> str:
    match form:
        case "int":
            return f"{value:.0f}"
        case "num":
            return to_figures(value, 4)
        case "signed":
            text = to_figures(value, 4)
            return text if text.startswith("-") or float(text) == 0 else f"+{text}"
        case "signed2":
            return f"{value:+.2f}" if round(value, 2) else f"{abs(value):.2f}"
        case "fixed1":
            return f"{value:.1f}"
        case "fixed2":
            return f"{value:.2f}"
        case "fixed3":
            return f"{value:.3f}"
        case "about":
            return _trimmed(to_figures(value, 3))
        case "short":
            return f"{value:.4g}"
        case "brief":
            return to_figures(value, 3)
        case "level":
            return f"{value:.5g}"
        case "percent":
            return f"{value:.1f}%"
        case "p":
            return p_text(value)
        case "stars":
            return stars(value)
        case _:
            return to_figures(value, 4)


def spread_text(value: Spread, form: Format) -> str:
    """Write mean±std; a capped mean above 10, 20 or 50 is written as >10, >20 or >50 alone."""
    if math.isnan(value.mean):
        return MISSING
    if form == "capped" and (cap := next((cap for cap in CAPS if value.mean > cap), None)):
        return f">{cap}"
    digits = 2 if form == "spread2" else 1
    mean = minus(f"{value.mean:.{digits}f}")
    if value.std is None or math.isnan(value.std):
        return mean
    return f"{mean}±{value.std:.{digits}f}"


def to_figures(value: float, digits: int) -> str:
    """Write a number to `digits` significant figures, in plain notation if that is readable."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 7:
        return f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return f"{value:.{digits - 1}e}"


def _trimmed(text: str) -> str:
    """Drop trailing zeros without information: 90 for 90.0."""
    mantissa, e, exponent = text.partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + e + exponent


def about(value: float | None) -> str:
    """Write a number for a sentence: three significant figures."""
    return cell_text(value, "about")


def with_interval(value: float, low: float | None, high: float | None) -> tuple[str, ...]:
    """Write an estimate and its interval for a sentence, all rounded to the same decimal place.

    That is the third figure of the largest, 0.180 (0.163 to 0.196), or of a narrow interval the
    second figure of half its width: 100.34 (100.31 to 100.37). Without an interval the estimate
    alone, to three figures.
    """
    if low is None or high is None:
        return (about(value),)
    half = (high - low) / 2.0
    largest = max(map(abs, (value, low, high)))
    if not (0.0 < half < math.inf and 1e-4 <= largest < 1e7):
        return about(value), about(low), about(high)
    place = math.floor(math.log10(half * (1.0 + 1e-9))) - 1
    place = min(place, math.floor(math.log10(largest)) - 2)
    return tuple(_round_to_power(number, place) for number in (value, low, high))


def from_to(*values: float) -> tuple[str, ...]:
    """Return numbers for a sentence, to the second figure of what they span.

    A number that this would leave fewer than two figures keeps two: 11.2 to 6.8, and 120 to 0.38.
    """
    span = max(values) - min(values)
    if not 0.0 < span < math.inf:
        return tuple(map(about, values))
    place = math.floor(math.log10(span)) - 1
    own = (math.floor(math.log10(abs(value))) - 1 if value else place for value in values)
    return tuple(_round_to_power(v, min(place, at)) for v, at in zip(values, own, strict=True))


def _round_to_power(value: float, place: int) -> str:
    """Round a number to a power of ten: 12.35 to -1 is 12.4, and 1235 to 2 is 1200."""
    number = round(value, -place)
    return minus(f"{number if number else 0.0:.{max(-place, 0)}f}")


def drawn(value: float | None) -> float | None:
    """Round a number for a chart: to six figures, finer than any pixel; None if not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def p_text(value: float) -> str:
    """Write a p-value: four decimals down to .0001, exponent form below."""
    return f"{value:.4f}" if value >= 1e-4 else f"{value:.1e}"


def stars(value: float) -> str:
    """Return the significance code of a p-value: *** ** * . at .001 .01 .05 .1."""
    return next((code for limit, code in STARS if value <= limit), "")


def minus(text: str) -> str:
    """Use the minus sign that aligns with digits, except inside an exponent."""
    return f"−{text[1:]}" if text.startswith("-") else text


def duration_text(seconds: float | None) -> str:
    """Write a duration: 12 s, 3 min 20 s, 5 h 07 min."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
