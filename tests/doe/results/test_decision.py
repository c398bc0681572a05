"""What a study that may stop early has decided, in words."""

from doe.analysis.sequential import TermDecision
from doe.results.decision import Decision, TermState, decision_json
from doe.study.values import Stopping

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
