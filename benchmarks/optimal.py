"""Optimal designs beside PyOptEx, process-improve and pydoe.optimal, as far as they are installed.

``pip install pyoptex process-improve`` in an environment of their own; the project needs neither.

Twenty problems: ranges with squares, factors of two to five levels, exclusions, constraints, 12 to
60 runs. Each answer is judged by the same model matrix, relative to the best answer of anyone.
"""

import contextlib
import io
import time
from collections.abc import Callable
from itertools import product
from statistics import mean
from typing import NamedTuple

import numpy as np

from benchmarks import Section
from doe.design.kinds import chosen_kind
from doe.design.model import bends, d_efficiency, model_matrix
from doe.study.values import Factor, Level, Responses, Study

Points = list[tuple[Level, ...]]


class Problem(NamedTuple):
    """A design to find."""

    name: str
    study: Study


def ranges(number: int) -> list[Factor]:
    """Name so many ranges from −1 to 1."""
    return [Factor(key, (-1.0, 1.0)) for key in "abcdefgh"[:number]]


def words(*sizes: int) -> list[Factor]:
    """Name factors with so many words each."""
    return [Factor(f"w{i}", tuple("stuvx"[:size])) for i, size in enumerate(sizes)]


def numbers(*sizes: int) -> list[Factor]:
    """Name factors with so many whole numbers each."""
    return [Factor(f"n{i}", tuple(range(1, size + 1)), listed=True) for i, size in enumerate(sizes)]


def problem(name: str, factors: list[Factor], runs: int, model: str, *exclude: str) -> Problem:
    """Make a study of a design problem."""
    design = {"kind": "optimal", "runs": runs, "model": model}
    responses = Responses(metrics=("y",))
    study = Study(
        *("s", "m:f", tuple(factors), responses), seeds=(1,), design=design, exclude=exclude
    )
    return Problem(name, study)


PROBLEMS = (
    problem("3 ranges", ranges(3), 12, "quadratic"),
    problem("3 ranges", ranges(3), 16, "quadratic"),
    problem("4 ranges", ranges(4), 18, "quadratic"),
    problem("4 ranges", ranges(4), 24, "quadratic"),
    problem("5 ranges", ranges(5), 26, "quadratic"),
    problem("6 ranges", ranges(6), 40, "quadratic"),
    problem("2 ranges, 3 words", [*ranges(2), *words(3)], 15, "quadratic"),
    problem("3 ranges, 2 and 3 words", [*ranges(3), *words(2, 3)], 24, "quadratic"),
    problem("3 ranges, 3 and 4 words", [*ranges(3), *words(3, 4)], 60, "quadratic"),
    problem("2·2·3·3·4 words", words(2, 2, 3, 3, 4), 18, "linear"),
    problem("2⁴·3⁴ words", words(2, 2, 2, 2, 3, 3, 3, 3), 20, "linear"),
    problem("5·4·3 words", words(5, 4, 3), 12, "linear"),
    problem("5·4·3 words", words(5, 4, 3), 40, "interactions"),
    problem("2·3·4 words", words(2, 3, 4), 20, "interactions"),
    problem("3·4·5 numbers", numbers(3, 4, 5), 14, "quadratic"),
    problem("3·3 numbers, 3 words", [*numbers(3, 3), *words(3)], 18, "quadratic"),
    problem("2 ranges, 5 numbers", [*ranges(2), *numbers(5)], 20, "quadratic"),
    problem("3·3·2 words, one cell out", words(3, 3, 2), 12, "linear", "w0=s, w1=t"),
    problem("4·3·2 words, two out", words(4, 3, 2), 16, "linear", "w0=s, w1=t", "w0=u, w2=t"),
    problem(
        "6 two-level, three out",
        words(2, 2, 2, 2, 2, 2),
        28,
        "interactions",
        *("w0=s, w1=s, w2=s", "w3=t, w4=t, w5=t", "w0=t, w5=s, w1=t"),
    ),
)
assert len(PROBLEMS) == 20


def allowed(study: Study, levels: tuple[Level, ...]) -> bool:
    """Tell whether a combination may run."""
    at = {factor.key: str(level) for factor, level in zip(study.factors, levels, strict=True)}
    parts = [[p.strip().split("=") for p in text.split(",")] for text in study.exclude]
    return not any(all(at[key] == level for key, level in bad) for bad in parts)


def candidates(study: Study, most: int = 60_000) -> Points:
    """List the grid of points that exchange algorithms choose from."""
    grid = [np.linspace(-1, 1, 5).tolist() if f.ranged else list(f.levels) for f in study.factors]
    if np.prod([len(g) for g in grid]) > most:
        grid = [[-1.0, 0.0, 1.0] if f.ranged else list(f.levels) for f in study.factors]
    return [levels for levels in product(*grid) if allowed(study, levels)]


def solve_doe(study: Study) -> Points:
    """Solve by this project."""
    return [point.levels for point in chosen_kind(study).points()]


def solve_pyoptex(study: Study) -> Points:
    """Solve by PyOptEx's coordinate exchange with ten starts, its default."""
    from pyoptex.doe.constraints import parse_constraints_script
    from pyoptex.doe.fixed_structure import (
        Factor as Their,
    )
    from pyoptex.doe.fixed_structure import (
        create_fixed_structure_design,
        create_parameters,
        default_fn,
    )
    from pyoptex.doe.fixed_structure.metric import Dopt
    from pyoptex.utils.model import model2Y2X, partial_rsm_names

    model = study.design["model"]
    theirs, effects = [], {}
    for factor in study.factors:
        if factor.ranged:
            theirs.append(Their(factor.key, type="continuous"))
        elif factor.numeric:
            low, high = factor.low, factor.high
            theirs.append(
                Their(factor.key, type="continuous", min=low, max=high, levels=list(factor.levels))
            )
        else:
            theirs.append(Their(factor.key, type="categorical", levels=list(factor.levels)))
        second = "quad" if bends(factor) else "tfi"
        effects[factor.key] = {"linear": "lin", "interactions": "tfi"}.get(model, second)
    y2x = model2Y2X(partial_rsm_names(effects), theirs)
    pairs = [[part.strip().split("=") for part in text.split(",")] for text in study.exclude]
    texts = [" & ".join(f'(`{key}` == "{level}")' for key, level in bad) for bad in pairs]
    script = " | ".join(f"({text})" for text in texts)
    constraints = parse_constraints_script(script, theirs) if script else None
    parameters = create_parameters(
        theirs, default_fn(theirs, Dopt(), y2x, constraints), study.design["runs"]
    )
    with contextlib.redirect_stderr(io.StringIO()):
        design, _ = create_fixed_structure_design(parameters, n_tries=10)
    return [tuple(row) for row in design[list(study.keys)].itertuples(index=False)]


def solve_process_improve(study: Study) -> Points:
    """Solve by process-improve's exchange over a grid of candidates."""
    from process_improve.experiments.designs_constrained import fedorov_exchange

    points = candidates(study)
    rows = model_matrix(study.factors, points, chosen_kind(study).terms() or ())
    fixed = np.empty((0, rows.shape[1]))
    chosen, _ = fedorov_exchange(rows, study.design["runs"], fixed, np.random.default_rng(1))
    return [points[i] for i in chosen]


def solve_pydoe(study: Study) -> Points:
    """Solve by pydoe.optimal, which knows polynomials of numbers without levels of their own."""
    from pydoe.optimal import optimal_design

    if not all(factor.ranged for factor in study.factors):
        raise NotImplementedError
    grid = np.array(candidates(study, 3_000), dtype=float)
    design, _ = optimal_design(grid, study.design["runs"], 2, method="modified_fedorov")
    return [tuple(row) for row in design.tolist()]


SOLVERS: dict[str, Callable[[Study], Points]] = {
    "doe": solve_doe,
    "PyOptEx": solve_pyoptex,
    "process-improve": solve_process_improve,
    "pydoe.optimal": solve_pydoe,
}


def judged(study: Study, solver: Callable[[Study], Points]) -> tuple[float, float] | None:
    """Return D-efficiency and seconds of an answer; None where there is none."""
    began = time.process_time()
    try:
        points = solver(study)
    except ImportError:
        raise
    except Exception:
        return None
    seconds = time.process_time() - began
    if len(points) != study.design["runs"] or not all(allowed(study, p) for p in points):
        return None
    terms = chosen_kind(study).terms() or ()
    return d_efficiency(model_matrix(study.factors, points, terms)), seconds


def run() -> list[Section]:
    """Solve every problem by everyone who is installed, in turn."""
    answers: dict[str, list[tuple[float, float] | None]] = {}
    for name, solver in SOLVERS.items():
        with contextlib.suppress(ImportError):
            judged(PROBLEMS[0].study, solver)  # compiles what is compiled at first use
            answers[name] = [judged(p.study, solver) for p in PROBLEMS]
    best = [
        max((a[i][0] for a in answers.values() if (a[i] or (0.0,))[0]), default=1.0)
        for i in range(len(PROBLEMS))
    ]
    rows, each = [], []
    for name, found in answers.items():
        relative = [a[0] / b for a, b in zip(found, best, strict=True) if a and a[0]]
        times = [a[1] for a in found if a]
        rows.append(
            (name, f"{len(relative)}", f"{mean(relative):.4f}", f"{min(relative):.4f}",
             f"{np.median(times):.2f} s", f"{max(times):.2f} s")
        )  # fmt: skip
    for i, p in enumerate(PROBLEMS):
        cells = [f"{a[i][0] / best[i]:.4f}" if a[i] and a[i][0] else "–" for a in answers.values()]
        each.append((p.name, p.study.design["model"], str(p.study.design["runs"]), *cells))
    note = (
        "Aim: all twenty, mean 0.998, least 0.99, at most 2 s each. D-efficiency relative to the "
        "best of all answers; processor time."
    )
    headers = ("solver", "solved", "mean", "least", "median time", "longest")
    return [
        Section("Twenty optimal designs", headers, tuple(rows), note),
        Section("Each problem", ("problem", "model", "runs", *answers), tuple(each)),
    ]
