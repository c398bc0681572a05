"""The worked examples of docs/extending.md do what it says when they are pasted."""

import io
import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

import doe
from doe.analysis import estimators, scales
from doe.design import kinds
from doe.running import engines
from doe.running.execute import EngineChoice, execute
from doe.running.scheduler import RunOptions
from doe.store.plan import write_plan
from doe.study import presets
from doe.study.values import Factor, Responses, Study
from doe.views import charts, tables
from doe.views.json import to_plain
from doe.views.live import open_display
from pit_model import config
from pit_model.metrics import metric_names
from tests.command_line import doe as command

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(r'^```\w+ title="(\S+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
EXAMPLES = dict(EXAMPLE.findall((ROOT / "docs" / "extending.md").read_text(encoding="utf-8")))
CATALOGUES = (charts.catalogue, tables.catalogue)


def paste(path, folder):
    """Write an example into a folder under its own name."""
    (folder / Path(path).name).write_text(EXAMPLES[path], encoding="utf-8")


@pytest.fixture
def pasted(tmp_path, monkeypatch):
    """Let a package find an example as if it were among its files."""
    names = []

    def into(package, path):
        paste(path, tmp_path)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        names.append(f"{package.__name__}.{Path(path).stem}")
        for catalogue in CATALOGUES:
            catalogue.cache_clear()

    yield into
    for name in names:
        sys.modules.pop(name, None)
    for catalogue in CATALOGUES:
        catalogue.cache_clear()


def result(**options):
    runs = pd.DataFrame(
        {"A": [0, 1, 0, 1] * 2, "B": [0, 0, 1, 1] * 2, "y": [1, 2, 4, 7, 2, 3, 4, 8]}
    )
    return doe.analyze(runs, "y", factors=("A", "B"), **options)


def test_there_is_one_of_each():
    assert sorted(EXAMPLES) == [
        "doe/analysis/estimators/midrange.py",
        "doe/analysis/scales/sqrt.py",
        "doe/design/kinds/one_at_a_time.py",
        "doe/running/engines/polite.py",
        "doe/views/charts/t_chart.py",
        "doe/views/tables/t_values.py",
        "pit_model/studies/large.toml",
    ]


def test_the_estimator(pasted):
    pasted(estimators, "doe/analysis/estimators/midrange.py")
    assert to_plain(result().analysis)["diagnostics"]["midrange"] == {"value": 4.5}


def test_the_transformation(pasted):
    pasted(scales, "doe/analysis/scales/sqrt.py")
    assert scales.choices() == ("none", "log", "logit", "sqrt", "boxcox", "auto")
    found = result(transform="sqrt").analysis
    assert found.transform.label("y") == "√y"
    means = {-1: (1 + 2 + 2**0.5 + 2) / 4, 1: (2**0.5 + 7**0.5 + 3**0.5 + 8**0.5) / 4}
    assert found.effects[0].effect == pytest.approx(means[1] - means[-1])
    assert found.response_scale[0].value == pytest.approx(means[1] ** 2 - means[-1] ** 2)


def test_the_table(pasted):
    pasted(tables, "doe/views/tables/t_values.py")
    analysis = result().analysis
    (table,) = [t for t in tables.screen_tables(analysis) if t.name == "t values y"]
    assert [row.values for row in table.rows] == [(e.term, e.t) for e in analysis.effects]
    assert table.name in [t.name for t in tables.response_tables(analysis)]


def test_the_chart(pasted):
    pasted(charts, "doe/views/charts/t_chart.py")
    analysed = result()
    drawn = analysed.t_chart().to_dict()  # validates against the schema
    assert drawn["encoding"]["y"]["title"] == "t of y"
    (records,) = drawn["datasets"].values()
    assert records == [{"term": e.term, "t": e.t} for e in analysed.analysis.effects]


def test_the_engine(pasted, tmp_path, monkeypatch):
    pasted(engines, "doe/running/engines/polite.py")
    monkeypatch.setitem(engines.ENGINES, "polite", "doe.running.engines.polite")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "doe" / "backends"))
    assert engines.engine_options()["nice"].engines == ("polite",)
    study = Study(
        name="tiny",
        backend="tiny_backends:ending",
        factors=(Factor(key="A", levels=(False, True)), Factor(key="B", levels=(False, True))),
        responses=Responses(metrics=("y",)),
        seeds=(1,),
        settings={"kind": "exception"},
        engines={"polite": {"nice": 5}},
    )
    plan, _ = write_plan(study, tmp_path / "runs" / "tiny")
    with open_display(Console(file=io.StringIO())) as display:
        polite = EngineChoice("polite", {})
        number = execute(plan, RunOptions(), polite, display).counts
    assert (number["done"], number["failed"]) == (2, 2)


def test_the_kind_of_design(pasted, tmp_path, monkeypatch):
    pasted(kinds, "doe/design/kinds/one_at_a_time.py")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "doe" / "backends"))
    monkeypatch.chdir(tmp_path)
    study = Study(
        name="tiny",
        backend="tiny_backends:seedless",
        factors=(Factor("A", (0, 1)), Factor("B", (0, 1)), Factor("C", (0, 1))),
        responses=Responses(metrics=("y",)),
        replicates=2,
        seeds=(1, 2),
        design={"kind": "one_at_a_time", "baseline_runs": 2},
    )
    plan, _ = write_plan(study, tmp_path / "runs" / "tiny")
    assert sorted(run.run_id for run in plan.design.runs if run.replicate == 1) == [
        *("000-r1", "000x2-r1", "001-r1", "002-r1", "003-r1")
    ]
    said = command("plan", "--out", "runs/tiny", "--augment", "1")
    assert "One factor at a time" in said.stdout
    assert doe.run(plan.directory)["done"] == 15
    effects = {e.term: e.effect for e in doe.analyze(plan.directory, "y", order=1).analysis.effects}
    assert [effects[key] for key in "ABC"] == pytest.approx([1.0, 2.0, 3.0])
    page = doe.report(plan.directory, out=tmp_path / "report")
    assert "tiny" in Path(page).read_text(encoding="utf-8")


def test_the_preset(tmp_path, monkeypatch):
    shutil.copytree(config.STUDIES, tmp_path, dirs_exist_ok=True)
    paste("pit_model/studies/large.toml", tmp_path)
    monkeypatch.setattr(presets, "files", lambda _package: tmp_path)
    monkeypatch.setattr(config, "STUDIES", tmp_path)
    assert "large" in presets.preset_names()
    study = presets.preset_study("large")
    settings = config.Config.from_settings({"preset": "large"}, {"A": True, "D": True})
    assert settings.image_size == 448
    asked = {*study.responses.metrics, *study.responses.further}
    assert asked == set(metric_names(settings.scales))


def test_every_place_that_contributing_names_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:doe|pit_model|docs|tests)/[\w/.]+\.\w+)`", text)
    places = [Path(name).parent if "NAME" in name else Path(name) for name in named]
    assert len(places) > 20
    assert [str(place) for place in places if not (ROOT / place).exists()] == []
