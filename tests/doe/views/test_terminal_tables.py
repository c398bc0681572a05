"""Tables and the plot on consoles of fixed width, compared with what they looked like.

Run with SNAPSHOTS=write to accept a new look, and read the difference before committing it.
"""

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from doe.analysis.analyze import analyze
from doe.analysis.dataset import FactorColumn
from doe.analysis.tables import TableOptions, table_datasets
from doe.results.dataset import factor_columns
from doe.results.designs import lettered_design
from doe.results.status import overview
from doe.study.presets import preset_study
from doe.views.plan_tables import factors_table, terms_table
from doe.views.plot import half_normal
from doe.views.status_tables import failure_table
from doe.views.table import Column, Row, Table
from doe.views.tables.anova import anova_table
from doe.views.tables.best import best_table
from doe.views.tables.effects import effects_table
from doe.views.tables.paper import best_rows
from doe.views.terminal import console, print_table, render_table
from tests.command_line import doe

SNAPSHOTS = Path(__file__).parent / "snapshots"


def plasma_etch():
    """Montgomery's plasma etch experiment: a 2^3 with two replicates."""
    first = [550, 669, 633, 642, 1037, 749, 1075, 729]
    second = [604, 650, 601, 635, 1052, 868, 1063, 860]
    rows = [
        {"A": row & 1, "B": row >> 1 & 1, "C": row >> 2 & 1, "etch": y}
        for replicate in (first, second)
        for row, y in enumerate(replicate)
    ]
    frame = pd.DataFrame(rows).astype(str)
    (data,) = table_datasets(frame, TableOptions(factors=("A", "B", "C"), goal="min"), ("etch",))
    return analyze(replace(data, unit="Å/min"))


def filtration():
    """Montgomery's filtration rate experiment: an unreplicated 2^4."""
    rates = [45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96]
    rows = [
        {key: row >> i & 1 for i, key in enumerate("ABCD")} | {"rate": y}
        for row, y in enumerate(rates)
    ]
    frame = pd.DataFrame(rows).astype(str)
    (data,) = table_datasets(frame, TableOptions(factors=tuple("ABCD"), goal="max"), ("rate",))
    return analyze(data)


def fraction():
    return terms_table(lettered_design("ABCDEF", "E=ABC, F=BCD", 2), {})


def factors_of(study):
    return factors_table(factor_columns(study), {f.key: f.description for f in study.factors})


def failures(unfinished_study):
    return failure_table(overview(unfinished_study).failures)


def drawn(renderable, width):
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def compare(name, text):
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("effects", lambda: effects_table(plasma_etch())),
        ("effects-saturated", lambda: effects_table(filtration())),
        ("anova", lambda: anova_table(plasma_etch())),
        ("best", lambda: best_table(plasma_etch())),
        ("factors", lambda: factors_of(preset_study("paper"))),
        ("aliases", fraction),
    ],
)
def test_tables_look_as_they_did(name, make, width):
    text = drawn(render_table(make(), width), width)
    assert max(map(len, text.splitlines())) <= width
    compare(f"{name}-{width}", text)


@pytest.mark.parametrize("width", [80, 120])
def test_failures_of_a_study_look_as_they_did(unfinished_study, width):
    compare(f"failures-{width}", drawn(render_table(failures(unfinished_study), width), width))


@pytest.mark.parametrize("width", [80, 120])
def test_the_plot_looks_as_it_did(width):
    text = drawn(half_normal(filtration(), width), width)
    assert max(map(len, text.splitlines())) <= width
    for term in ("A", "AC", "AD", "D", "C"):
        assert f"● {term}" in text or f"{term} ●" in text
    compare(f"half-normal-{width}", text)


def test_headings_of_parts_stand_over_the_configurations(paper_report):
    subject = paper_report.subject
    table = best_rows(subject, subject.section, subject.section.groups[0], subject.cells)
    lines = drawn(render_table(table, 80), 80).splitlines()
    heading = next(line for line in lines if "F=0 (Noise off)" in line)
    row = next(line for line in lines if "A0B0C1D0E0F0" in line)
    assert heading.index("F=0") == row.index("A0B0")


def test_factors_show_a_scale_where_one_is_not_linear():
    rate = FactorColumn("lr", "lr", (0.001, 0.1), numeric=True, scale="log")
    switch = FactorColumn("aug", "aug", (False, True))
    lines = drawn(render_table(factors_table((rate, switch), {}), 80), 80).splitlines()
    assert any("High (+1)   Scale" in line for line in lines)
    assert "log" in next(line for line in lines if line.strip().startswith("lr "))
    plain = (switch, FactorColumn("x", "x", (1, 2), numeric=True))
    assert "Scale" not in drawn(render_table(factors_table(plain, {}), 80), 80)


def test_columns_that_give_way_are_named_not_cut():
    columns = (Column("a", "Term"), *(Column(f"c{i}", f"Column {i}", keep=i < 3) for i in range(9)))
    table = Table("t", "Wide", columns, (Row(("x", *("y" * 8 for _ in range(9)))),))
    text = drawn(render_table(table, 80), 80)
    assert "Column 2" in text
    assert "Column 8 not shown" in text
    assert "…" not in text


COLOUR = "\x1b[38;2;47;127;193m"


def test_no_colour_when_piped_or_when_asked(monkeypatch, capsys):
    table = Table("t", "T", (Column("a", "A"),), (Row(("x",), marks={"a": "good"}),))
    print_table(table)
    assert "\x1b[" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    print_table(table, console())
    assert COLOUR in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(table, console())
    assert COLOUR not in capsys.readouterr().out


def test_commands_print_no_escape_codes_into_a_pipe(paper_study):
    text = doe("analyze", "--study", paper_study, "--response", "dec_avg", "--plot").stdout
    assert "Half-normal plot of |effect| on dec_avg" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_analyze_begins_with_sentences_and_brief_stops_there(paper_study):
    def analyze(*words):
        return doe("analyze", "--study", paper_study, "--response", "dec_avg", *words).stdout

    short, whole, brief = analyze(), analyze("--full"), analyze("--brief")
    assert whole.startswith(brief.rstrip())
    assert short.startswith(brief.rstrip())
    assert short.count("─────") < whole.count("─────")
    assert "Effects on dec_avg" in short
    assert "Analysis of variance" not in short
    assert len(short.splitlines()) < 60 < len(whole.splitlines())
    assert brief.splitlines()[0] == "dec_avg [px]: 256 runs, goal min"
    for heading in ("Best configuration", "Caveats", "Try"):
        assert f"\n{heading}\n" in brief
    assert f"doe analyze --study {paper_study}"[:70] in "".join(brief.split("Try")[1].split("\n  "))
    assert "Analysis of variance" not in brief
    order = ["Lenth's method", "Configurations by", "Analysis of variance", "Effects on dec_avg"]
    assert sorted(order, key=whole.index) == order, "the shortest table first"


def test_configurations_are_never_cut_so_that_two_look_alike():
    configs = [f"a-long-optimizer · 0.0001 · with-augment-{on}" for on in ("off", "on")]
    names = "optimizer · learning_rate · augment"
    columns = (Column("config", names), *(Column(k, k, "num") for k in "abcd"))
    rows = tuple(Row((config, 1234.5, 0.001, 2.0, 3.0)) for config in configs)
    text = drawn(render_table(Table("best", "Best", columns, rows), 50), 50)
    assert "…" not in text
    assert [word for word in text.split() if word.startswith("with-augment-")] == [
        "with-augment-off",
        "with-augment-on",
    ]


def test_the_analysis_of_a_study_loads_none_of_the_slow_packages(paper_study):
    code = (
        "import sys\nfrom doe.cli import main\n"
        f"sys.argv = ['doe', 'analyze', '--study', {str(paper_study)!r}, '-r', 'dec_avg']\n"
        "try: main()\nexcept SystemExit as ended: assert not ended.code\n"
        "slow = {'scipy.stats', 'scipy.optimize', 'scipy.linalg', 'pandas', 'altair'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1:] == ["[]"], ended.stderr
