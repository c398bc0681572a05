"""Overall desirability of configurations (Derringer and Suich 1980), with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from doe.analysis import distributions as stats
from doe.analysis.contrasts import MOST_RUNS, Floats
from doe.analysis.dataset import Level
from doe.analysis.fitted import FittedResponse
from doe.analysis.goals import Candidates, GoalMean, goal_means
from doe.goals import Desire

DRAWS = 2000
"""Bootstrap samples of the residuals."""
SEED = 42
SHARED = " It has no interval: a bootstrap takes runs as independent, and these share an error."
FACTORS = (0.5, 2.0)
"""By which a weight is multiplied to see whether another configuration becomes the best."""


class Desirable(Struct, frozen=True):
    """A configuration with the desirability of each response and of all together."""

    config: str
    levels: tuple[Level, ...]
    overall: float
    ci_low: float | None  # bootstrap, of this configuration alone
    ci_high: float | None
    share: float | None  # of the bootstrap samples in which it is the best of those that ran
    single: tuple[float, ...]  # of each response
    means: tuple[GoalMean, ...]
    ran: bool  # False for a prediction of the model at a configuration without runs


class WeightChange(Struct, frozen=True):
    """Best configuration when the weight of one response changes."""

    response: str
    weight: float
    config: str
    overall: float
    same: bool  # whether it is the best with the weights as they are


class Desirability(Struct, frozen=True):
    """Configurations by their overall desirability, the best first."""

    responses: tuple[str, ...]
    desires: tuple[Desire, ...]
    configs: tuple[Desirable, ...]  # those that ran
    model: Desirable | None  # the best of the model, where it says something of others
    weights: tuple[WeightChange, ...]
    sentence: str


def desirability_of(y: Floats, desire: Desire) -> Floats:
    """``d = (y - low) / (target - low)`` below the target and alike above, cut to 0 and 1."""
    d = np.ones_like(y)
    if desire.low is not None:
        d = np.minimum(d, (y - desire.low) / (desire.target - desire.low))
    if desire.high is not None:
        d = np.minimum(d, (desire.high - y) / (desire.high - desire.target))
    return np.asarray(np.clip(d, 0.0, 1.0))


def overall(single: Floats, weights: Floats) -> Floats:
    """``D = (Π d_i^w_i)^(1 / Σ w_i)``, over the first axis."""
    with np.errstate(divide="ignore"):
        logs = np.tensordot(weights / weights.sum(), np.log(single), axes=1)
    return np.asarray(np.exp(logs))


def single_desirabilities(means: Sequence[Floats], desires: Sequence[Desire]) -> Floats:
    """Responses x configurations."""
    return np.stack([desirability_of(y, d) for y, d in zip(means, desires, strict=True)])


# The bootstrap ------------------------------------------------------------------------------------


class Bootstrap:
    """Resampled residuals of whole runs, so that responses of a run stay together.

    Residuals ``e / √(1 - h)`` are centred and scaled to the error of the fit. Each sample is
    stretched by ``√(ν / χ²_ν)``, as Student's t is, since few degrees of freedom tell the error.
    """

    def __init__(self, responses: Sequence[FittedResponse]) -> None:
        rng = np.random.default_rng(SEED)
        runs = responses[0].runs.count
        errors = [_errors(response) for response in responses]
        pool = np.flatnonzero(np.all([np.isfinite(e) for e in errors], axis=0))
        self.known = bool(
            len(pool) > 1
            and runs <= MOST_RUNS
            and not any(response.fit.strata for response in responses)
            and all(response.fit.df_error > 0 or response.fit.exact for response in responses)
        )
        if not self.known:
            return
        drawn = pool[rng.integers(len(pool), size=(DRAWS, runs))]
        chance = rng.uniform(size=DRAWS)
        self._shifts = []
        for response, error in zip(responses, errors, strict=True):
            fit = response.fit
            if fit.exact:
                self._shifts.append(np.zeros((DRAWS, len(fit.coef))))
                continue
            own = error[pool] - error[pool].mean()
            size = float(np.sqrt((own**2).mean()))
            error[pool] = own * (np.sqrt(fit.ms_error) / size if size > 0 else 0.0)
            stretch = np.sqrt(fit.df_error / stats.chi2.ppf(chance, fit.df_error))
            shift = error[drawn[:, fit.observed_runs]] @ fit.maps.T
            self._shifts.append(shift * stretch[:, None])

    def means(self, of: Candidates) -> list[Floats]:
        """Samples x configurations of each response, on its own scale."""
        parts = zip(of.responses, of.u, of.rows, self._shifts, strict=True)
        return [response.back(u + shift @ rows.T) for response, u, rows, shift in parts]


def _errors(response: FittedResponse) -> Floats:
    """Residuals of all planned runs over ``√(1 - h)``; NaN where there is none."""
    fit = response.fit
    free = 1.0 - fit.leverage
    errors = np.full(response.runs.count, np.nan)
    usable = free > 1e-6
    errors[fit.observed_runs[usable]] = fit.residual[usable] / np.sqrt(free[usable])
    return errors


# Configurations by desirability -------------------------------------------------------------------


def chosen(of: Candidates, desires: Mapping[str, Desire]) -> tuple[Candidates, list[Desire]]:
    """Return the candidates with the responses that have a desirability, in its order."""
    names = [response.data.response for response in of.responses]
    at = [names.index(name) for name in desires]
    return (
        Candidates(
            tuple(of.responses[i] for i in at),
            of.runs,
            of.cells,
            tuple(of.u[i] for i in at),
            tuple(of.rows[i] for i in at),
        ),
        list(desires.values()),
    )


def score(of: Candidates, desires: Mapping[str, Desire]) -> Floats:
    """Return the overall desirability of each configuration by its means."""
    own, wanted = chosen(of, desires)
    weights = np.array([desire.weight for desire in wanted])
    return overall(single_desirabilities(list(own.means), wanted), weights)


def desirability(
    ran: Candidates, model: Candidates | None, desires: Mapping[str, Desire], alpha: float
) -> Desirability:
    """Return the configurations that ran by their desirability, and the best of the model."""
    of, wanted = chosen(ran, desires)
    weights = np.array([desire.weight for desire in wanted])
    resampled = Bootstrap(of.responses)
    single = single_desirabilities(list(of.means), wanted)
    ranked = _desirable(of, wanted, resampled, alpha, ran=True)
    ranked.sort(key=lambda d: -d.overall)
    predicted = None
    if model is not None:
        own, _ = chosen(model, desires)
        predicted = _desirable(own, wanted, resampled, alpha, ran=False)[0]
    changes = [
        _changed(of, single, weights, i, factor, tuple(desires))
        for i in range(len(wanted))
        for factor in FACTORS
    ]
    top = ranked[0]
    return Desirability(
        responses=tuple(desires),
        desires=tuple(wanted),
        configs=tuple(ranked),
        model=predicted,
        weights=tuple(replace(change, same=change.config == top.config) for change in changes),
        sentence=_sentence(top, changes) + SHARED * any(r.fit.strata for r in of.responses),
    )


def _desirable(
    of: Candidates, wanted: Sequence[Desire], resampled: Bootstrap, alpha: float, *, ran: bool
) -> list[Desirable]:
    weights = np.array([desire.weight for desire in wanted])
    single = single_desirabilities(list(of.means), wanted)
    value = overall(single, weights)
    k = len(value)
    low = high = share = np.full(k, np.nan)
    if resampled.known:
        samples = overall(single_desirabilities(resampled.means(of), wanted), weights)
        low, high = np.quantile(samples, [alpha / 2.0, 1.0 - alpha / 2.0], axis=0)
        share = np.bincount(samples.argmax(axis=1), minlength=k) / len(samples)
    means = goal_means(of, range(k), alpha)
    return [
        Desirable(
            config=of.config(i),
            levels=of.runs.values(int(of.cells[i])),
            overall=float(value[i]),
            ci_low=None if low[i] != low[i] else float(low[i]),
            ci_high=None if high[i] != high[i] else float(high[i]),
            share=float(share[i]) if ran and share[i] == share[i] else None,
            single=tuple(single[:, i].tolist()),
            means=means[i],
            ran=ran,
        )
        for i in range(k)
    ]


def _changed(
    of: Candidates,
    single: Floats,
    weights: Floats,
    i: int,
    factor: float,
    names: Sequence[str],
) -> WeightChange:
    changed = weights.copy()
    changed[i] *= factor
    value = overall(single, changed)
    best = int(np.argmax(value))
    return WeightChange(
        names[i], float(changed[i]), of.config(best), float(value[best]), same=False
    )


def _sentence(top: Desirable, changes: Sequence[WeightChange]) -> str:
    if top.overall <= 0:
        return (
            "Every configuration has a desirability of 0: each is unacceptable in some response; "
            "widen low or high."
        )
    others = list(dict.fromkeys(c.config for c in changes if c.config != top.config))
    if not others:
        return f"{top.config} is the most desirable, even with any one weight halved or doubled."
    return (
        f"{top.config} is the most desirable; with some weight halved or doubled it is "
        f"{' or '.join(others[:3])}{' …' * (len(others) > 3)}."
    )
