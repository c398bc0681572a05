"""A screening and a surface beside Optuna: examples/tuning with the same space, trainings, seeds.

``pip install optuna`` in an environment of its own; the project does not need it. Each study has 28
trainings with one seed and wants the desirability of its study file; what it recommends is trained
again with eight fresh seeds.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import doe
from benchmarks import Section
from doe.analysis.desirability import desirability_of, overall
from doe.goals import Desire
from doe.study.file import load_study
from doe.study.values import Study

EXAMPLE = Path(__file__).parents[1] / "examples" / "tuning"
STUDIES, TRAININGS, ADDED, SEARCH = 3, 28, 15, 60
"""Studies, trainings of each, those of its surface, and trainings that seek the best."""
FRESH = tuple(range(101, 109))
MODEL = "lr,batch,width,momentum,decay,noise,lr:batch,lr:width,batch:width,lr^2,batch^2,width^2"
CENTRE = {"lr": 0.158, "batch": 23, "width": 64, "momentum": 0.25, "decay": 1e-5, "noise": 0.1}
CENTRE_SECONDS = 0.32
"""What a training of the centre took when the example ran; times are told in its seconds."""

Setting = dict[str, float]
Found = dict[str, float]


def example() -> ModuleType:
    """Import train.py of the example."""
    spec = importlib.util.spec_from_file_location("tuning_example", EXAMPLE / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Bench:
    """The space, what is wanted, and trainings at the speed of the example."""

    def __init__(self) -> None:
        self.study = load_study(EXAMPLE / "study.toml")
        self.train = example().train
        times = [self.train(**CENTRE, seed=seed)["seconds"] for seed in range(9)]
        self.unit = CENTRE_SECONDS / float(np.median(times))

    def measure(self, setting: Setting, seed: int) -> Found:
        """Train once."""
        found = self.train(**setting, seed=seed)
        return {"error": found["error"], "seconds": self.unit * found["seconds"]}

    def wanted(self, error: float, seconds: float) -> float:
        """Overall desirability of two means."""
        desires: dict[str, Desire] = self.study.desirability
        pairs = zip((error, seconds), (desires["error"], desires["seconds"]), strict=True)
        single = np.array([[float(desirability_of(np.array(y), d))] for y, d in pairs])
        weights = np.array([desires["error"].weight, desires["seconds"].weight])
        return float(overall(single, weights)[0])

    def fresh(self, setting: Setting) -> tuple[float, float, float]:
        """Desirability, error and seconds (geometric means) over the fresh seeds."""
        runs = [self.measure(setting, seed) for seed in FRESH]
        error, seconds = (
            math.exp(np.mean([math.log(run[key]) for run in runs])) for key in ("error", "seconds")
        )
        return self.wanted(error, seconds), error, seconds


class Answer(NamedTuple):
    """What a study recommends, and what it says about why."""

    settings: dict[str, Setting]
    promised: dict[str, float]
    """Desirability by what the study knows."""
    why: dict[str, float]
    """Factor -> its effect on ln error where that is significant, or its importance."""


def by_design(bench: Bench, seed: int) -> Answer:
    """Screen with 13 runs, add 15 for a surface, ask for the optimum."""
    study: Study = bench.study
    with tempfile.TemporaryDirectory() as place:
        text = (EXAMPLE / "study.toml").read_text("utf-8").replace("[1]", f"[{seed}]", 1)
        path = Path(place) / "study.toml"
        path.write_text(text.replace("train:run", "math:sqrt"), "utf-8")
        planned = doe.plan(path, out=Path(place) / "runs")
        for augmented in (False, True):
            if augmented:
                doe.plan(out=planned, augment="optimal", runs=ADDED, model=MODEL)
            table = doe.load(planned)
            table = table[table["state"] == "pending"][[*study.keys, "seed"]]
            rows = [
                bench.measure({key: row[key] for key in study.keys}, int(row["seed"]))
                for row in table.to_dict("records")
            ]
            for key in ("error", "seconds"):
                table[key] = [row[key] for row in rows]
            doe.import_(table, planned)
        results = doe.analyze(planned)
    weighed = results.trade_off.desirability
    chosen = {"optimum of the models": weighed.model, "best run": weighed.configs[0]}
    effects = results["error"].effects
    sure = effects[(effects["p_holm"] < 0.05) & effects["term"].isin(study.keys)]
    return Answer(
        {name: dict(zip(study.keys, d.levels, strict=True)) for name, d in chosen.items()},
        {name: d.overall for name, d in chosen.items()},
        dict(zip(sure["term"], sure["effect"], strict=True)),
    )


def by_trials(bench: Bench, sampler: str, seed: int) -> Answer:
    """Let Optuna propose the trainings, one after the other."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        found = bench.measure(proposed(bench.study, trial), seed)
        return bench.wanted(found["error"], found["seconds"])

    samplers = {"TPE": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    search = optuna.create_study(direction="maximize", sampler=samplers[sampler](seed=seed))
    search.optimize(objective, n_trials=TRAININGS)
    weights = optuna.importance.get_param_importances(search) if sampler == "TPE" else {}
    name = f"best of {sampler}"
    return Answer({name: dict(search.best_params)}, {name: search.best_value}, dict(weights))


def proposed(study: Study, trial: Any) -> Setting:
    """Ask a trial for a value of each factor of the example."""
    whole, real = trial.suggest_int, trial.suggest_float
    return {
        f.key: (whole if f.integer else real)(f.key, f.low, f.high, log=f.scale == "log")
        for f in study.factors
    }


ROUTES: tuple[Callable[[Bench, int], Answer], ...] = (
    by_design,
    lambda bench, seed: by_trials(bench, "TPE", seed),
    lambda bench, seed: by_trials(bench, "random", seed),
)


def long_search(bench: Bench) -> Setting:
    """What many trainings with two seeds each find: the best that is known beside the answers."""
    import optuna

    def objective(trial: optuna.Trial) -> float:
        runs = [bench.measure(proposed(bench.study, trial), seed) for seed in (901, 902)]
        error, seconds = (np.mean([run[key] for run in runs]) for key in ("error", "seconds"))
        return bench.wanted(float(error), float(seconds))

    search = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=900, n_startup_trials=50)
    )
    search.optimize(objective, n_trials=SEARCH // 2)
    return dict(search.best_params)


class Studied(NamedTuple):
    """The answers of all routes to one study."""

    fresh: dict[str, tuple[float, float, float]]
    """Desirability, error and time of each answer by fresh seeds."""
    promised: dict[str, float]
    why: tuple[dict[str, float], ...]


def studied(bench: Bench, seed: int) -> Studied:
    """Run a study by every route and train its answers with fresh seeds."""
    answers = [route(bench, seed) for route in ROUTES]
    settings = {name: own for answer in answers for name, own in answer.settings.items()}
    promised = {name: own for answer in answers for name, own in answer.promised.items()}
    fresh = {name: bench.fresh(setting) for name, setting in settings.items()}
    return Studied(fresh, promised, tuple(answer.why for answer in answers))


def known_best(bench: Bench) -> dict[str, tuple[float, float, float]]:
    """What needs no study, or a long one, by fresh seeds."""
    settings = {
        f"TPE, {SEARCH} trainings with two seeds": long_search(bench),
        "centre of the ranges": CENTRE,
    }
    return {name: bench.fresh(setting) for name, setting in settings.items()}


def run() -> list[Section]:
    """Run every study by every route and compare."""
    bench = Bench()
    studies = [studied(bench, seed) for seed in range(1, STUDIES + 1)]
    return sections(bench.study.keys, studies, known_best(bench))


def sections(
    keys: Sequence[str], studies: list[Studied], others: dict[str, tuple[float, float, float]]
) -> list[Section]:
    """Tables of how near the answers are to the best, and what is said about why."""
    found = {name: [s.fresh[name] for s in studies] for name in studies[0].fresh}
    found |= {name: [one] for name, one in others.items()}
    best = max(one[0] for own in found.values() for one in own)
    told = {name: [s.promised[name] for s in studies] for name in studies[0].promised}
    rows = [_row(name, own, told.get(name), best) for name, own in found.items()]
    reasons = [_reason(key, *zip(*(s.why[:2] for s in studies), strict=True)) for key in keys]
    count = len(studies)
    return [
        Section(
            "Error against time of a small network, 28 trainings",
            ("answer", "D by fresh seeds", "least", "below the best", "promised", "error", "time"),
            tuple(rows),
            f"{count} studies a line with training seeds 1 to {count}, which are the samplers' "
            "too; means over studies with their standard errors, each answer trained with eight "
            f"fresh seeds. D: overall desirability of examples/tuning; the best that any answer "
            f"has is {best:.3f}. Times are in units in which the centre takes {CENTRE_SECONDS} s.",
        ),
        Section(
            "What the same trainings say about why",
            ("factor", "doe: effect on ln error, if significant", "TPE: importance for D"),
            tuple(reasons),
            f"Of {count} studies. doe: in how many Holm's p is below 0.05, and the sign. An "
            "importance has neither sign nor interval: range over the studies, and in how many the "
            "factor comes first.",
        ),
    ]


def _row(
    name: str, found: list[tuple[float, float, float]], told: list[float] | None, best: float
) -> tuple[str, ...]:
    wanted, error, seconds = (np.array(part) for part in zip(*found, strict=True))
    mean = f"{wanted.mean():.3f}"
    if len(found) > 1:
        mean += f" ± {wanted.std(ddof=1) / math.sqrt(len(found)):.3f}"
    promise = f"{np.mean(told):.3f}" if told else "–"
    away = f"{best - wanted.mean():.3f}"
    means = f"{error.mean():.2f} %", f"{seconds.mean():.2f} s"
    return (name, mean, f"{wanted.min():.3f}", away, promise, *means)


def _reason(key: str, effects: Sequence[Found], weights: Sequence[Found]) -> tuple[str, str, str]:
    signs = [effect[key] > 0 for effect in effects if key in effect]
    parts = [f"{signs.count(s)} {w}" for s, w in ((True, "+"), (False, "−")) if signs.count(s)]
    own = [weight.get(key, 0.0) for weight in weights]
    first = sum(max(weight, key=weight.__getitem__) == key for weight in weights)
    return key, ", ".join(parts) or "0", f"{min(own):.2f} to {max(own):.2f}, first in {first}"
