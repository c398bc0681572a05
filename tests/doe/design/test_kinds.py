import msgspec
import pytest

from doe.design.efficiency import design_efficiency
from doe.design.kinds import chosen_kind, kind_names
from doe.design.runs import make_design
from doe.errors import DoeError, SpecError
from doe.study.file import dump_study, parse_study
from doe.study.values import Factor, Responses, Study


def study(*factors, **changes):
    base = Study(
        name="s", backend="m:f", factors=factors, responses=Responses(metrics=("y",)), seeds=(1,)
    )
    return msgspec.structs.replace(base, **changes)


TWO = [Factor(key, (-1.0, 1.0)) for key in "ABCD"]


def test_kinds_are_found_by_their_names():
    assert "factorial" in kind_names()
    assert "__init__" not in kind_names()
    named = {
        text: chosen_kind(study(*TWO, fraction=text)).kind.__name__.rpartition(".")[2]
        for text in ("", "D=ABC", "1/3")
    }
    assert named == {"": "factorial", "D=ABC": "fraction", "1/3": "subset"}
    same = make_design(study(*TWO, design={"kind": "factorial"}))
    assert same == make_design(study(*TWO))


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (
            {"kind": "factorail"},
            r"design.kind = 'factorail': not a kind of design \(did you mean 'factor",
        ),
        ({"kind": "factorial", "runs": 9}, "design.runs: not a setting of factorial; it has none"),
        ({"runs": 9}, "design.runs: not a setting of factorial; it has none"),
    ],
)
def test_a_kind_or_setting_that_is_none_is_one_sentence(design, said):
    with pytest.raises(DoeError, match=said):
        make_design(study(*TWO, design=design))


STUDY = """
name = "s"
backend = "m:f"
[design]
kind = "factorial"
[factors.lr]
low = 0.001
high = 0.1
scale = "log"
[factors.batch]
levels = [16, 64]
[factors.dataset]
levels = ["cifar", "svhn"]
role = "condition"
[responses]
metrics = ["y"]
"""


def test_ranges_lists_and_conditions_are_told_apart_and_kept():
    read = parse_study(STUDY.encode())
    lr, batch, dataset = read.factors
    assert [factor.ranged for factor in read.factors] == [True, False, False]
    assert [factor.role for factor in read.factors] == ["choice", "choice", "condition"]
    assert batch.listed
    assert not dataset.listed
    assert lr.level_at(0.0) == 0.01
    assert read.design == {"kind": "factorial"}
    assert parse_study(dump_study(read).encode()) == read


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('role = "condition"', 'role = "met"', "got 'met'; expected choice or condition"),
        ('kind = "factorial"', "kind = 3", "design.kind = 3: expected the name of a kind"),
        ('kind = "factorial"', "kind = 1979-05-27", "design.kind = datetime.date"),
    ],
)
def test_what_cannot_be_is_said(old, new, said):
    with pytest.raises(SpecError, match=said):
        parse_study(STUDY.replace(old, new).encode())


def test_a_fraction_belongs_to_a_factorial():
    text = STUDY.replace('name = "s"', 'name = "s"\nfraction = "1/2"', 1)
    with pytest.raises(SpecError, match=r"fraction = '1/2': only allowed in a factorial"):
        parse_study(text.replace('kind = "factorial"', 'kind = "surface"').encode())


BOTH = "main effects, interactions"
LEVELS = Factor("w", ("x", "y", "z"))


@pytest.mark.parametrize(
    ("asked", "percent", "words"),
    [
        (study(*TWO), 100.0, BOTH),
        (study(*TWO, fraction="D=ABC"), 100.0, "main effects"),
        (study(*TWO, replicates=2, seeds=(1, 2), blocks="ABC"), 100.0, BOTH),
        (study(LEVELS, Factor("n", (1, 2, 9))), 100.0, BOTH),
        (study(*TWO, design={"kind": "screening"}), 100.0, "main effects"),
        # 3²: the mean with the squares 36, each line 6, the interaction 4: (36·6·6·4)^(1/6) / 9
        (study(*TWO[:2], design={"kind": "surface"}, centre=1), 46.22, f"{BOTH}, squares"),
    ],
)
def test_efficiency_of_every_kind(asked, percent, words):
    told = design_efficiency(asked, make_design(asked))
    assert told.percent == pytest.approx(percent, abs=0.01)
    assert told.words == words
    assert (told.mean_variance is None) == (asked.kind == "factorial")


def test_prediction_variance_over_the_region():
    """Main effects on four orthogonal runs: (1 + x² + y² + z²) / 4; its mean is 1/2, at most 1."""
    asked = study(*TWO[:3], design={"kind": "screening"})
    told = design_efficiency(asked, make_design(asked))
    assert told.mean_variance == pytest.approx((1 + 3 / 3) / 4, abs=0.02)
    assert told.largest_variance == pytest.approx(1.0, abs=0.05)


def test_what_gsd_cannot_make_is_refused_before_it_takes_the_memory():
    factors = [Factor(k, (0, 1)) for k in "ABCD"] + [Factor(k, (0, 1, 2)) for k in "EFGH"]
    for parts in (36, 48, 200):
        with pytest.raises(
            DoeError, match=r'set kind = "optimal", runs = \d+ and model = "linear"'
        ):
            make_design(study(*factors, fraction=f"1/{parts}"))
    eighteen = [Factor("A", (0, 1)), Factor("B", (0, 1)), Factor("C", tuple("xyz")), LEVELS]
    design = {"kind": "optimal", "runs": 18, "model": "linear"}
    asked = study(*eighteen, Factor("D", tuple("pqrs")), design=design)
    assert design_efficiency(asked, make_design(asked)).percent > 95


def test_a_cell_that_never_runs_takes_its_part_of_the_interaction_alone():
    design = {"kind": "optimal", "runs": 12, "model": "interactions"}
    asked = study(LEVELS, Factor("v", ("p", "q")), design=design, exclude=("w=x, v=q",))
    told = design_efficiency(asked, make_design(asked))
    assert told.coefficients == 5
    assert told.percent > 70
    assert told.largest_variance < 1
