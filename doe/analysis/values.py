"""The values that an analysis consists of: frozen, plain, and enough to draw every view from.

Numbers are Python floats; ``None`` stands for a quantity that does not exist (the standard error
in a saturated design). Tuples keep the order of the terms (standard order) unless said otherwise.
The values that come in thousands hold scalars only and are left out of garbage collection.
"""

from __future__ import annotations

from msgspec import Struct


class Effect(Struct, frozen=True, gc=False):
    """One term of the model on the analysed scale."""

    term: str
    effect: float  # mean at high minus mean at low, twice the coefficient
    coef: float
    se: float | None  # standard error of the effect; None in a saturated design
    ci_low: float | None
    ci_high: float | None
    t: float | None  # effect / se; in a saturated design effect / PSE
    p: float | None  # two-sided t; in a saturated design Lenth's, simulated
    p_holm: float | None
    p_bh: float | None
    ss: float  # type III sum of squares (all types agree in a balanced design)
    percent: float  # of the total sum of squares


class ScaleEffect(Struct, frozen=True, gc=False):
    """An effect taken back from the analysed scale to the scale of the response."""

    term: str
    kind: str  # "ratio" (log: geometric mean at high / at low) or "difference"
    value: float
    low: float | None
    high: float | None


class AnovaRow(Struct, frozen=True, gc=False):
    """A line of the analysis of variance: Block first, then terms, Lack of fit, Error, Total."""

    source: str
    df: int
    ss: float
    ms: float | None
    f: float | None
    p: float | None


class Blocking(Struct, frozen=True):
    """What the blocks took out of the error."""

    name: str
    blocks: int
    variance: float  # variance component (MS_block - MS_error) / runs per block, at least 0
    efficiency: float  # replicates needed without blocks per replicate with them
    sentence: str


class Anova(Struct, frozen=True):
    """The analysis of variance with the model's summary figures."""

    rows: tuple[AnovaRow, ...]  # type III where the design is unbalanced
    type2: tuple[AnovaRow, ...] | None  # type II, only where it differs (unbalanced)
    balanced: bool
    error: str | None  # "pure error", "residual", or None in a saturated design
    r2: float | None
    r2_adjusted: float | None
    r2_predicted: float | None
    blocking: Blocking | None


class HalfNormalPoint(Struct, frozen=True, gc=False):
    """A point of the half-normal plot: |effect| on x, half-normal quantile on y."""

    term: str
    magnitude: float
    quantile: float


class Lenth(Struct, frozen=True):
    """Lenth's pseudo standard error and margins of error of the effects."""

    m: int  # number of effects
    alpha: float
    s0: float
    pse: float
    me: float  # margins with simulated critical values
    sme: float
    me_t: float  # margins with t critical values on m/3 degrees of freedom
    sme_t: float
    p: tuple[float, ...]  # simulated, one per effect in standard order
    points: tuple[HalfNormalPoint, ...]  # by rising magnitude; reference line y = x / pse


class Residual(Struct, frozen=True, gc=False):
    """One observed run under the model."""

    run_id: str
    run_order: int
    config: str
    fitted: float
    residual: float
    studentized: float | None  # externally studentized; None where leverage is 1
    leverage: float
    cook: float | None
    normal_quantile: float  # plotting position (i - 1/2)/n


class Finding(Struct, frozen=True):
    """One check, its figures, and a sentence that says what to do."""

    check: str  # normality, equal variance, spread by factor, drift, slot, host, outliers, …
    ok: bool
    statistic: float | None
    p: float | None
    advice: str
    runs: tuple[str, ...] = ()


class BoxCox(Struct, frozen=True):
    """Profile log-likelihood of the Box-Cox exponent under the model."""

    exponent: float
    low: float
    high: float
    suggestion: str  # none, log or boxcox
    grid: tuple[float, ...]
    loglik: tuple[float, ...]


class Diagnostics(Struct, frozen=True):
    """All checks of the model's assumptions."""

    findings: tuple[Finding, ...]
    residuals: tuple[Residual, ...]  # in run order; empty in a saturated design
    boxcox: BoxCox | None


class RobustRow(Struct, frozen=True, gc=False):
    """One term by several methods."""

    term: str
    effect: float
    p: float | None  # the analysis's own
    p_hc3: float | None
    p_permutation: float | None
    p_maxt: float | None  # permutation, adjusted for all terms at once
    boot_low: float | None
    boot_high: float | None
    trimmed: float | None  # contrast of 20 % trimmed cell means
    median: float | None  # contrast of cell medians
    verdicts: tuple[bool | None, ...]  # significant by p, hc3, permutation, bootstrap
    agree: bool


class Robust(Struct, frozen=True):
    """Where the conclusions depend on the method."""

    rows: tuple[RobustRow, ...]
    alpha: float
    permutations: int
    bootstraps: int
    seed: int
    sentence: str


class DispersionEffect(Struct, frozen=True, gc=False):
    """Effect of a term on ln s² of the cells."""

    term: str
    effect: float  # on ln s²
    ratio: float  # variance at high / variance at low, exp(effect)
    z: float  # effect over its normal-theory standard error
    p: float
    p_holm: float


class Dispersion(Struct, frozen=True):
    """Which factors change the spread between replicates."""

    effects: tuple[DispersionEffect, ...]
    replicates: int  # fewest runs in a cell that was used
    lenth: Lenth | None
    skipped: tuple[str, ...]  # configurations without a spread
    sentence: str


class CellMean(Struct, frozen=True, gc=False):
    """One configuration on the response scale."""

    config: str
    coded: tuple[int, ...]
    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None
    mcb_low: float | None  # Hsu: this mean minus the best of the others
    mcb_high: float | None
    among_best: bool  # cannot be told from the best


class Prediction(Struct, frozen=True):
    """A configuration under the reduced model."""

    config: str
    mean: float
    ci_low: float | None
    ci_high: float | None


class ReducedModel(Struct, frozen=True):
    """The active terms closed under strong heredity, and what they predict to be best."""

    terms: tuple[str, ...]
    added: tuple[str, ...]  # parents that heredity brought in
    coefficients: tuple[float, ...]  # the mean first
    sigma: float | None
    r2: float | None
    best: Prediction


class Best(Struct, frozen=True):
    """Configurations ranked, the best first."""

    goal: str
    cells: tuple[CellMean, ...]  # at most 1024
    critical: float | None  # Hsu's d, for the cell that is best
    among_best: tuple[str, ...]
    reduced: ReducedModel
    sentence: str


class DivergenceRow(Struct, frozen=True):
    """Rate of missing or diverged runs at the two levels of a factor."""

    factor: str
    low_lost: int
    low_n: int
    high_lost: int
    high_n: int
    p_exact: float  # Fisher
    log_odds: float  # Firth's penalised estimate, all factors together
    p_firth: float  # penalised likelihood ratio
    p_holm: float  # of p_firth


class BoundedEffect(Struct, frozen=True, gc=False):
    """An effect that is only known to lie between two values."""

    term: str
    effect: float | None  # complete-case answer, or None for a censored table
    low: float
    high: float
    sign: str  # "+", "-" or "?" where the interval holds 0


class Missing(Struct, frozen=True):
    """Runs without a value, never dropped in silence."""

    planned: int
    observed: int
    runs: tuple[str, ...]
    states: tuple[str, ...]  # state and reason of each of them
    empty_cells: tuple[str, ...]
    rates: tuple[DivergenceRow, ...]
    bounds: tuple[BoundedEffect, ...]  # every gone value anywhere in the two bounds
    bound_low: float
    bound_high: float
    sentence: str


class FactorProbability(Struct, frozen=True):
    """Posterior probability that a factor is active."""

    factor: str
    probability: float


class ModelProbability(Struct, frozen=True):
    """Posterior probability of a set of active factors."""

    factors: tuple[str, ...]
    probability: float


class BoxMeyer(Struct, frozen=True):
    """Box and Meyer's posterior over the sets of active factors."""

    prior: float
    gamma: float
    order: int  # highest interaction among active factors
    factors: tuple[FactorProbability, ...]
    models: tuple[ModelProbability, ...]  # the most probable ones, best first


class Transformation(Struct, frozen=True):
    """The scale on which the response was analysed."""

    name: str  # none, log, boxcox
    exponent: float | None  # 0 for log, None for none
    asked: str  # what the user asked for: none, log, boxcox, auto


class FactorLevels(Struct, frozen=True):
    """A factor with its two levels as they were given."""

    key: str
    low: str
    high: str


class Analysis(Struct, frozen=True):
    """Everything about one response."""

    response: str
    unit: str
    goal: str  # min, max or none
    n: int
    factors: tuple[FactorLevels, ...]
    block: str | None
    transform: Transformation
    alpha: float
    order: int  # highest interaction in the model
    df_error: int
    sigma: float | None
    r2: float | None
    mean: float
    effects: tuple[Effect, ...]
    response_scale: tuple[ScaleEffect, ...]  # empty without a transformation
    anova: Anova
    lenth: Lenth | None
    diagnostics: Diagnostics
    inestimable: tuple[str, ...]  # terms that the runs cannot tell from others
    aliases: tuple[str, ...]  # "D = ABC": aliased terms, the estimated one first
    missing: Missing | None
    dispersion: Dispersion | None
    best: Best
    box_meyer: BoxMeyer | None
    robust: Robust | None
    warnings: tuple[str, ...]


class CensoredAnalysis(Struct, frozen=True):
    """Effects of a published table with censored cells, as exact intervals."""

    response: str
    unit: str
    n: int
    censored: int
    ceiling: float | None  # upper end of the highest class
    factors: tuple[FactorLevels, ...]
    effects: tuple[BoundedEffect, ...]
    warnings: tuple[str, ...]


class TermAcross(Struct, frozen=True):
    """One term over several responses."""

    term: str
    effects: tuple[float | None, ...]  # one per response, None where inestimable
    p: tuple[float | None, ...]
    p_bh: tuple[float | None, ...]  # false discovery control over all terms and responses
    average: float  # mean of the effects


class Across(Struct, frozen=True):
    """Several responses side by side, ranked by the magnitude of the average effect."""

    responses: tuple[str, ...]
    rows: tuple[TermAcross, ...]  # ranked
    tests: int  # number of tests that the false discovery rate covers
