"""What a study that may stop early has decided, in words."""

import numpy as np
import pytest

from doe.analysis.dataset import Dataset, FactorColumn, Runs
from doe.analysis.sequential import TermDecision
from doe.analysis.spending import Rule
from doe.results.course import Course
from doe.results.decision import Decision, TermState, decision_json
from doe.study.values import Factor, Responses, Stopping, Study

EFFECT = TermState("y", "A", TermDecision(1, 2.0, 0.1, 1.8, 2.2, 0.001, "effect", 2), None)
OPEN = TermState("y", "B", TermDecision(2, 0.1, 0.1, -0.1, 0.3, 0.3, "open", None), 0.5)


def reached(replicates, terms, expected):
    return Decision(Stopping(4), replicates, terms, expected, 8)


def test_a_decision_is_told_in_whole_sentences():
    on_the_way = reached(2, (EFFECT, OPEN), 3.5)
    assert on_the_way.sentences == (
        "1 of 2 terms is decided after 2 of at most 4 replicates: 1 effect, 0 negligible, 1 open.",
        "The next look is expected to decide 0.5 of the 1 open; the study is expected to take "
        "3.5 replicates in all, 28 runs.",
    )
    assert decision_json(on_the_way)["sentences"] == on_the_way.sentences
    assert "no further replicate is run" in reached(2, (EFFECT,), 2.0).sentences[1]
    assert "what is open stays open" in reached(4, (EFFECT, OPEN), 4.0).sentences[1]
    assert "after 2 replicates" in reached(1, (OPEN,), None).sentences[1]


def course(scale, y, rule, matters):
    """What the looks decide of main effects of 2³, a portion per replicate."""
    cells = np.tile(np.arange(8), len(y) // 8)
    factors = tuple(FactorColumn(key, key, (0, 1)) for key in "ABC")
    index = cells[:, None] >> np.arange(3) & 1
    runs = Runs(factors, index, block=np.repeat(np.arange(len(y) // 8), 8))
    answers = Responses(metrics=("y",), matters={"y": matters})
    study = Study(
        name="s",
        backend="a:b",
        factors=tuple(Factor(key=key, levels=(0, 1)) for key in "ABC"),
        responses=answers,
    )
    data = Dataset(runs, "y", y, goal="min", scale=scale)
    portion = np.repeat(np.arange(1, len(y) // 8 + 1), 8)
    judged, _ = Course(study, rule, len(y) // 8, portion).decided([data], [1, 2, 4])
    return [own.state for own in judged]


def test_looks_are_on_the_scale_that_the_response_declares():
    """A loss over three decades: A takes a third of it, which differences of raw values hide."""
    cells, rng = np.tile(np.arange(8), 4), np.random.default_rng(2)
    logs = np.where(cells & 1, np.log(1 / 3), 0.0) + 3.0 * (cells >> 1 & 1) + 3.0 * (cells >> 2)
    y = np.exp(logs + 0.1 * rng.standard_normal(32))
    raw = course("raw", y, Rule(4), 3.0)
    declared = course("log", y, Rule(4), 3.0)
    middle = np.log(y[:16]).mean()
    size = 2.0 * np.arcsinh(1.5 / np.exp(middle))
    by_hand = course("raw", np.log(y), Rule(4), size)
    assert [s.verdict for s in declared] == [s.verdict for s in by_hand]
    assert [s.p for s in declared] == [s.p for s in by_hand]
    assert declared[0].effect == pytest.approx(
        2.0 * np.exp(middle) * np.sinh(by_hand[0].effect / 2.0)
    )
    assert declared[0].p < 0.01 * raw[0].p
    assert declared[0].decided_at < raw[0].decided_at
    found = course("auto", y, Rule(4), 3.0)
    assert [s.p for s in found] == [s.p for s in raw], "what results choose is no scale of looks"
    assert course("log", y - y.min(), Rule(4), 3.0)[0].p is not None, "a zero has no logarithm"


def test_an_effect_within_what_matters_is_negligible_on_its_scale():
    cells, rng = np.tile(np.arange(8), 4), np.random.default_rng(2)
    y = 0.9 + 0.05 * (cells & 1) + 0.001 * rng.standard_normal(32)
    first, second, _ = course("logit", y, Rule(4), 0.02)
    assert (first.verdict, second.verdict) == ("effect", "negligible")
    assert first.effect == pytest.approx(0.05, abs=0.01)
    assert -0.02 < second.low <= 0.0 <= second.high < 0.02
    assert course("logit", y, Rule(4), 2.0)[0].verdict == "effect"
