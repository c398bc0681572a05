"""LaTeX: special characters, marks, and a document that compiles without a complaint."""

import re
import shutil
import subprocess

import pytest

from doe.numbers import Spread
from doe.views import latex
from doe.views.table import Column, Row, Table
from doe.views.tables import file_tables

needs_pdflatex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="pdflatex is not installed (texlive-latex-recommended has all it takes)",
)


def test_special_characters_are_escaped():
    assert latex.escape("50% of A_1 & {B} #2 $x~^\\") == (
        r"50\% of A\_1 \& \{B\} \#2 \$x\textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert latex.escape("σ² ≤ −1 ± 2 >") == r"$\sigma$$^2$ $\le$ $-$1 $\pm$ 2 {$>$}"
    assert latex.escape("Ærø 中") == "Ærø U+4E2D"


def test_a_table_as_the_paper_has_it():
    columns = (Column("row", "Row", "int"), Column("c", "Config"), Column("B", "B56", "spread2"))
    rows = (
        Row(("F=0",), "section"),
        Row((4, "A0", Spread(1.14, 0.01)), "baseline"),
        Row((12, "A1", Spread(1.12, 0.05)), marks={"B": "best"}),
    )
    text = latex.render(Table("l1 best", "Errors", columns, rows, ("A note.",)))
    assert r"\label{tab:l1-best}" in text
    assert r"\multicolumn{3}{l}{\emph{F=0}} \\" in text
    assert r"\textit{4} & \textit{A0} & \textit{1.14{\footnotesize$\,\pm\,$0.01}} \\" in text
    assert r"12 & A1 & \underline{1.12{\footnotesize$\,\pm\,$0.05}} \\" in text
    assert text.count(r"\midrule") == 2, "below the head and below the baseline"
    assert "A note." in text


def test_powers_of_ten_and_caps_are_set_as_such():
    columns = (Column("p", "p", "p"), Column("y", "y", "capped"))
    text = latex.render(Table("t", "T", columns, (Row((3.2e-12, Spread(60.0, 1.0))),)))
    assert r"3.2$\times$10$^{-12}$ & {$>$}50 \\" in text


def test_a_long_table_goes_on_in_further_floats_with_one_label():
    rows = tuple(Row((i,)) for i in range(90))
    text = latex.render(Table("t", "T", (Column("i", "i", "int"),), rows))
    assert text.count(r"\begin{table}") == 3
    assert text.count(r"\label") == 1
    assert text.count("(continued)") == 2
    assert all(f"\n{i} \\\\" in text for i in range(90))


def test_columns_that_may_give_way_are_left_out_and_named_where_the_page_ends():
    columns = (Column("a", "Term"), *(Column(f"c{i}", f"Col {i}", keep=i < 9) for i in range(12)))
    text = latex.render(Table("t", "T", columns, (Row(("x", *("y" * 8 for _ in range(12)))),)))
    assert "Left out for width: Col 9, Col 10, Col 11." in text
    assert "Col 8 " in text


def written(report):
    return [table for tables in file_tables(report) for table in tables]


def test_a_paper_has_its_own_tables_effects_and_variance_of_its_averages(paper_report):
    paper, further = file_tables(paper_report)
    assert [table.name for table in paper][9:] == [
        "effects",
        "effects enc_avg",
        "anova enc_avg",
        "effects dec_avg",
        "anova dec_avg",
    ]
    assert len(further) == 17 * 5 - 4
    titles = [table.title for table in paper]
    assert any(title.startswith("Effects on encoder error [px]") for title in titles)
    front = next(table for table in paper if table.name == "pareto")
    assert [column.title for column in front.columns][2:5] == ["encoder error", "low", "high"]


def compiled(folder, names):
    (folder / "all.tex").write_text(latex.document(names), encoding="utf-8")
    command = ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert ended.returncode == 0, ended.stdout[-2000:]
    return ended.stdout


def test_tables_of_an_unfinished_study_say_so(unfinished_report, paper_report):
    assert all("105 of 128" in table.notes[0] for table in written(unfinished_report))
    assert not any("Provisional" in str(table.notes) for table in written(paper_report))


@needs_pdflatex
def test_every_table_of_a_report_compiles_without_overfull_boxes(paper_report, tmp_path):
    names = []
    for table in written(paper_report):
        names.append(latex.slug(table.name))
        (tmp_path / f"{names[-1]}.tex").write_text(latex.render(table), encoding="utf-8")
    assert len(names) == len(set(names)) == 2 + 7 + 1 + 17 * 5
    log = compiled(tmp_path, names)
    assert not re.findall(r"Overfull|Float too large|undefined|multiply defined", log)


@needs_pdflatex
@pytest.mark.parametrize("length", [3, 24, 60])
def test_keys_levels_and_units_of_any_length_fit_the_page(length, tmp_path):
    from synthetic import study_directory

    from doe.analysis.options import AnalysisOptions
    from doe.results.report import report_of
    from doe.results.sources import study_page
    from doe.results.status import overview
    from doe.study.values import Factor, Responses, Study

    def word(text):
        return (text + "_of_a_kind" * 6)[:length]

    study = Study(
        name="long",
        backend="x:run",
        factors=tuple(
            Factor(word(key), (f"none_{key}", word(f"level_{key}")), name=f"Name of {key} " * 3)
            for key in ("lr", "aug", "opt", "wd")
        ),
        responses=Responses(
            metrics=(word("acc"), word("loss")),
            unit="px/frame",
            averages={"both": (word("acc"), word("loss"))},
        ),
        replicates=2,
        seeds=(1, 2),
    )
    subject = study_page(overview(study_directory(tmp_path, study=study)))
    report = report_of(subject, AnalysisOptions(robust=True))
    tables = written(report)
    assert tables[0].name == "factors"
    assert "[px/frame]" in next(table.title for table in tables if table.name == "effects both")
    names = []
    for table in tables:
        names.append(latex.slug(table.name))
        (tmp_path / f"{names[-1]}.tex").write_text(latex.render(table), encoding="utf-8")
    log = compiled(tmp_path, names)
    assert not re.findall(r"Overfull.*|Float too large|undefined|multiply defined", log)


@needs_pdflatex
def test_hostile_names_compile(tmp_path):
    printable = "".join(map(chr, range(32, 127))) + "äßøσ−…中\u200b"
    columns = (Column("a_b", "a_b & 50%"), Column("long", "Text"))
    rows = (
        Row((printable, printable)),
        Row(("lr=0.1,", "configuration_with_a_name_of_many_characters=on," * 5)),
        Row(("x" * 30, "y" * 300)),
    )
    (tmp_path / "t.tex").write_text(
        latex.render(Table("t", printable, columns, rows, (printable,))), encoding="utf-8"
    )
    assert "Overfull" not in compiled(tmp_path, ["t"])
