"""What every fitted model has: the error that tests are made against, lack of fit, and R²."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doe.analysis.contrasts import Floats
from doe.analysis.streams import OverSeeds, Seeding

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Differences below this share of the largest value are rounding, not error."""


@dataclass(frozen=True, kw_only=True)
class Fitted(ABC):
    """A model fitted by least squares to one response, on the scale of y over `unit`."""

    y: Floats
    unit: float = 1.0
    fitted: Floats
    leverage: Floats
    ss_total: float
    ss_residual: float
    df_residual: int
    ss_pure: float
    df_pure: int
    pooled: bool = False  # test against the residual even where there are replicates
    seeding: Seeding | None = None  # where replicates share seeds of several streams
    over_seeds: OverSeeds | None = None  # tested against where replicates share seeds

    @property
    @abstractmethod
    def residual(self) -> Floats:
        """Observed minus fitted."""

    @property
    def n(self) -> int:
        """Number of observed runs."""
        return len(self.y)

    @property
    def from_pure(self) -> bool:
        """Whether replicates estimate the error, rather than the residual of the model."""
        return self.df_pure > 0 and not self.pooled

    @property
    def error_line(self) -> tuple[float, int]:
        """Sum of squares and degrees of freedom of what is left for the error."""
        if self.from_pure:
            return self.ss_pure, self.df_pure
        return self.ss_residual, self.df_residual

    @cached_property
    def exact(self) -> bool:
        """Whether runs are left for the error and differ by rounding alone."""
        ss, df = self.error_line
        largest = float(np.abs(self.y).max()) / self.unit
        return df > 0 and ss <= self.n * (ROUNDING * largest) ** 2

    @property
    def error(self) -> str | None:
        """What estimates the error: "pure error", "residual", "variation over seeds", or None."""
        if self.df_error == 0:
            return None
        if self.over_seeds is not None:
            return "variation over seeds"
        return "pure error" if self.from_pure else "residual"

    @property
    def df_error(self) -> int:
        """Degrees of freedom of the error; 0 in a saturated design and where all fits exactly."""
        if self.exact:
            return 0
        return self.error_line[1] if self.over_seeds is None else self.over_seeds.whole_df

    @property
    def ms_error(self) -> float:
        """Mean square of the error, NaN where there is none."""
        if self.df_error == 0:
            return float("nan")
        return self.error_line[0] / self.df_error if self.over_seeds is None else self.over_seeds.ms

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the error on the scale of y; None where there is none."""
        return None if self.df_error == 0 else float(np.sqrt(self.ms_error)) * self.unit

    @property
    def square(self) -> float:
        """What takes a sum of squares to one of y; infinite where that has no number."""
        return self.unit * self.unit

    @property
    def lack_of_fit(self) -> tuple[float, int]:
        """Sum of squares and degrees of freedom of the residual beyond the pure error."""
        return max(self.ss_residual - self.ss_pure, 0.0), self.df_residual - self.df_pure

    def r_squared(self) -> tuple[float | None, float | None, float | None]:
        """R², adjusted R² and predicted R² (1 - PRESS / SS_total) of terms and blocks together."""
        if self.ss_total <= 0:
            return None, None, None
        r2 = 1.0 - self.ss_residual / self.ss_total
        if self.df_residual == 0:
            return r2, None, None
        adjusted = 1.0 - (self.ss_residual / self.df_residual) / (self.ss_total / (self.n - 1))
        free = 1.0 - self.leverage
        if (free < 1e-9).any():
            return r2, adjusted, None
        press = float(((self.residual / free) ** 2).sum())
        return r2, adjusted, 1.0 - press / self.ss_total
