"""The numbers of docs/findings.md, from the committed studies: ``python docs/findings.py``.

Tables and phrases come out as they stand in the document.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from doe import analyze, load
from doe.analysis.analyze import Analysis
from doe.results.decision import replayed
from doe.results.observations import scan_study
from pit_model import baseline
from pit_model.config import Config
from pit_model.dataset import make_split

ROOT = Path(__file__).parent.parent
STUDY = ROOT / "runs" / "pit-small"
FULL = ROOT / "runs" / "pit-224"
PAPER = ROOT / "examples" / "paper"

METRICS = [f"{kind}{scale}" for kind in "BHP" for scale in (14, 28, 56)]
THEIRS = {name: f"{name[0]}{4 * int(name[1:])}" for name in METRICS}
"""Names of the metrics in the paper, whose images are four times as large."""
PAPER_STUCK = 57.0
"""Error of a tracker stuck at the centre in the paper, px."""
GROUPS = {"enc_avg": "effects-enc.csv", "dec_avg": "effects-dec.csv"}
NAMES = {"enc_avg": "encoder", "dec_avg": "decoder"}
SETTINGS = {"image_size": 56, "frames": 20, "test_sequences": 16}
"""The test videos of the study."""
ROWS = (4, 7, 23, 31, 39, 55, 63)
"""Configurations that docs/paper.md prints beside the paper's."""


# The data -----------------------------------------------------------------------------------------


@cache
def runs() -> pd.DataFrame:
    return load(STUDY)


@cache
def analysis(response: str, transform: str = "none", robust: bool = False) -> Analysis:
    return analyze(STUDY, response, transform=transform, robust=robust).analysis


@cache
def means() -> pd.DataFrame:
    """Mean of each response over the replicates, by row of the paper's table."""
    return runs().groupby("row")[[*METRICS, *GROUPS]].mean()


@cache
def full_runs() -> pd.DataFrame:
    """The runs at 224 pixels by row of the paper's table."""
    table = load(FULL)
    levels = table[["E", "F"]].astype(int)
    return table.assign(row=7 + 16 * levels["E"] + 32 * levels["F"], **levels).sort_values("row")


def full_error(row: int, metric: str) -> float:
    return float(full_runs().set_index("row").at[row, metric])


def full_course(run_id: str, metric: str) -> list[float]:
    """A metric on the validation videos, epoch by epoch."""
    return pd.read_csv(FULL / run_id / "epochs.csv")[metric].tolist()


@cache
def stuck() -> float:
    """Error of a tracker stuck at the centre on the test videos, px."""
    config = Config.from_settings(SETTINGS)
    position = make_split(config, "test").position
    return float((position - (config.image_size - 1) / 2).abs().mean())


def effects(response: str, transform: str = "none") -> dict[str, float]:
    """Effects of all terms without F, the largest first."""
    by_term = {e.term: e.effect for e in analysis(response, transform).effects if "F" not in e.term}
    return dict(sorted(by_term.items(), key=lambda item: -abs(item[1])))


def paper_effects(response: str) -> dict[str, float]:
    """The ten effects that the paper prints, in its order."""
    table = pd.read_csv(PAPER / GROUPS[response])
    return dict(zip(table["term"], table["Avg"].astype(float), strict=True))


@cache
def paper_cells() -> pd.DataFrame:
    """The paper's table of all configurations as printed, under our names of the metrics."""
    table = pd.read_csv(PAPER / "full_factorial.csv", dtype=str).set_index("row")
    table.index = table.index.astype(int)
    return table[list(THEIRS.values())].set_axis(METRICS, axis="columns")


def paper_order(metric: str) -> "pd.Series[float]":
    """Its cell means as numbers in their order: ``>10``, ``>20`` and ``>50`` above all prints."""
    classes = {">10": 1e3, ">20": 2e3, ">50": 3e3}
    return paper_cells()[metric].map(lambda text: classes.get(text) or float(text))


def significant(analysed: Analysis) -> set[str]:
    return {e.term for e in analysed.effects if e.p_holm is not None and e.p_holm < analysed.alpha}


# How they are written -----------------------------------------------------------------------------


def number(value: float, digits: int = 2) -> str:
    """With a sign that is a minus, not a hyphen."""
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def lines(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def listed(terms: Iterable[str]) -> str:
    """Terms by order and name."""
    return ", ".join(sorted(terms, key=lambda term: (len(term), term))) or "none"


# Tables -------------------------------------------------------------------------------------------


def effects_table(response: str) -> str:
    """The paper's ten effects and ours, both as a share of the error of a stuck tracker."""
    here, paper = effects(response), paper_effects(response)
    ranks = {term: i for i, term in enumerate(here, 1)}
    strong = significant(analysis(response))
    robust = significant(analysis(response, "log"))
    terms = [*paper, *(term for term in list(here)[:10] if term not in paper)]
    places = {term: f"{i}" for i, term in enumerate(paper, 1)}
    body = [
        (
            term,
            places.get(term, "–"),
            f"{signed(paper[term])} px ({signed(100 * paper[term] / PAPER_STUCK, 0)} %)"
            if term in paper
            else "–",
            f"{ranks[term]}",
            f"{signed(here[term])} px ({signed(100 * here[term] / stuck(), 0)} %)",
            "yes" if term in strong else "no",
            "yes" if term in robust else "no",
        )
        for term in terms
    ]
    head = ("term", "rank, paper", "paper", "rank, here", "here", "p < 0.05", "on the log scale")
    return lines(head, body)


def agreement_table() -> str:
    """Rank correlation of the effects that the paper prints with ours."""
    body = []
    for response, name in NAMES.items():
        paper, here = paper_effects(response), effects(response)
        ours = [here[term] for term in paper]
        theirs = list(paper.values())
        same = sum(np.sign(ours) == np.sign(theirs))
        rho, tau = stats.spearmanr(theirs, ours), stats.kendalltau(theirs, ours)
        size = stats.spearmanr(np.abs(theirs), np.abs(ours))
        common = len(set(paper) & set(list(here)[:10]))
        body.append(
            (
                name,
                f"{same} of 10",
                f"{common} of 10",
                f"{number(rho.statistic)} (p = {rho.pvalue:.3f})",
                f"{number(tau.statistic)}",
                f"{number(size.statistic)} (p = {size.pvalue:.3f})",
            )
        )
    head = ("effects", "same sign", "in our ten", "Spearman", "Kendall", "Spearman of sizes")
    return lines(head, body)


def order_table() -> str:
    """Rank correlation of the 64 cell means with the paper's, metric by metric."""
    body = []
    for kind, name in (("B", "B, soft"), ("H", "H, hard"), ("P", "P, physics")):
        cells = []
        for scale in (14, 28, 56):
            metric = f"{kind}{scale}"
            rho = stats.spearmanr(paper_order(metric), means()[metric]).statistic
            cells.append(number(float(rho)))
        body.append((name, *cells))
    return lines(("", "coarse", "middle", "fine"), body)


def main_effects_table() -> str:
    """Main effects with their intervals."""
    body = []
    for term in "ABCDEF":
        cells = [term]
        for response in GROUPS:
            effect = next(e for e in analysis(response).effects if e.term == term)
            low, high = signed(effect.ci_low), signed(effect.ci_high)
            cells.append(f"{signed(effect.effect)} ({low} to {high})")
        body.append(cells)
    return lines(("factor", "encoder, px (95 %)", "decoder, px (95 %)"), body)


def noise_table() -> str:
    """Terms with F that are real for the encoder or the decoder."""
    both = {key: {e.term: e.effect for e in analysis(key).effects} for key in GROUPS}
    strong = {key: significant(analysis(key)) for key in GROUPS}
    terms = {
        term for significant_terms in strong.values() for term in significant_terms if "F" in term
    }
    largest = sorted(terms, key=lambda term: -max(abs(both[key][term]) for key in GROUPS))
    body = [
        (term, *(signed(both[key][term]) + "*" * (term in strong[key]) for key in GROUPS))
        for term in largest
    ]
    return lines(("term", "encoder, px", "decoder, px"), body)


def subpixel_table() -> str:
    """How many of the 32 configurations err by less than a pixel on average, clean and noisy."""
    body = []
    for noisy in (0, 1):
        part = means()[(means().index >= 32) == bool(noisy)]
        body.append(
            (
                "noisy" if noisy else "clean",
                *(f"{int((part[metric] < 1).sum())}" for metric in METRICS),
            )
        )
    return lines(("of 32", *METRICS), body)


def beside_paper(heads: Iterable[str], rows: Iterable[tuple[int, str, Iterable[float]]]) -> str:
    """Rows of the paper's table, each with our label and our errors under it."""
    body = []
    for row, label, errors in rows:
        body.append((f"{row}", label, "paper", *paper_cells().loc[row]))
        body.append(("", "", "here", *map(number, errors)))
    return lines(("row", "configuration", "whose", *heads), body).replace("|  |  |", "| | |")


def rows_table() -> str:
    """Rows of the paper beside ours: for docs/paper.md."""
    labels = runs().drop_duplicates("row").set_index("row")["config"]
    rows = [(row, labels[row], means().loc[row, METRICS]) for row in ROWS]
    return beside_paper("BBBHHHPPP", rows)


def fragile_table() -> str:
    """Terms that some methods call real and others do not."""
    body = []
    for response, name in NAMES.items():
        raw, log = significant(analysis(response)), significant(analysis(response, "log"))
        robust = analysis(response, robust=True).estimates["robust"]
        maxt = {row.term for row in robust.rows if row.p_maxt is not None and row.p_maxt < 0.05}
        kinds = (raw, log, maxt, raw & log & maxt)
        body.append((name, *(f"{len(kind)}" for kind in kinds)))
    head = ("error", "pixels, Holm", "log, Holm", "pixels, permutation max-T", "all three")
    return lines(head, body)


def best_table() -> str:
    """The best configurations by Hsu's comparison with the best, on both scales."""
    body = []
    for response, name in NAMES.items():
        for transform in ("none", "log"):
            best = analysis(response, transform).best
            first = best.cells[0].config
            row = int(runs().loc[runs()["config"] == first, "row"].iloc[0])
            body.append(
                (
                    name,
                    "pixels" if transform == "none" else "log",
                    f"{first} (row {row})",
                    f"{number(means().loc[row, response])} px",
                    f"{len(best.among_best)}",
                )
            )
    head = ("error", "scale", "best configuration", "its mean", "not to be told from the best")
    return lines(head, body)


def spread_table() -> str:
    """Dispersion: how the variance over replicates changes with each factor."""
    body = []
    for term in "ABCDEF":
        cells = [term]
        for response in GROUPS:
            for transform in ("none", "log"):
                dispersion = analysis(response, transform).estimates["dispersion"]
                effect = next(e for e in dispersion.effects if e.term == term)
                mark = "*" if effect.p_holm < 0.05 else ""
                cells.append(f"{number(effect.ratio)}{mark}")
        body.append(cells)
    head = ("factor", "encoder, px", "encoder, log", "decoder, px", "decoder, log")
    return lines(head, body)


def baseline_table() -> str:
    """Motion masks on the test videos of the study."""
    body = []
    for noisy in (False, True):
        config = Config.from_settings({**SETTINGS, "F": noisy})
        for method, values in baseline.evaluate(config).items():
            cells = [number(values[f"{kind}56"]) for kind in "BHP"]
            body.append(("noisy" if noisy else "clean", method, *cells))
        part = means()[(means().index >= 32) == noisy]
        cells = [number(part[f"{kind}56"].min()) for kind in "BHP"]
        body.append(("noisy" if noisy else "clean", "best configuration for each", *cells))
    return lines(("videos", "method", "B56", "H56", "P56"), body)


def full_table() -> str:
    """The configurations at the paper's 224 pixels, beside its own."""
    heads = list(THEIRS.values())
    rows = [
        (run["row"], f"A1B1C1D0E{run['E']:d}F{run['F']:d}", run[heads])
        for _, run in full_runs().iterrows()
    ]
    return beside_paper(heads, rows)


def stopping_table() -> str:
    """When the study would have stopped, had it been looked at after each replicate."""
    study, statuses = scan_study(STUDY)
    most = max(status.run.replicate for status in statuses)
    body = []
    for response, name in NAMES.items():
        for matters in (2.0, 3.0, 5.0):
            reached = replayed(study, statuses, response, matters, most)
            at = [term.state.decided_at or np.inf for term in reached.terms]
            end = min(max(at), most)
            effect = {t.term: t.state.decided_at for t in reached.terms if t.state.low is not None}
            detected = {
                t.term
                for t in reached.terms
                if t.state.verdict == "effect" and effect[t.term] <= end
            }
            lacking = significant(analysis(response)) & set(effect) - detected
            body.append(
                (
                    name,
                    f"{matters:g} px",
                    *(str(sum(a <= n for a in at)) for n in range(2, most + 1)),
                    f"{end * reached.runs_each:.0f}",
                    str(sum(a > end for a in at)),
                    ", ".join(sorted(detected)),
                    ", ".join(sorted(lacking)) or "none",
                )
            )
    looks = [f"decided after {n}" for n in range(2, most + 1)]
    head = ("response", "matters", *looks, "runs", "open", "effects by then", "lacking")
    return lines(head, body)


TABLES = {
    "effects on the encoder": lambda: effects_table("enc_avg"),
    "effects on the decoder": lambda: effects_table("dec_avg"),
    "agreement of the effects": agreement_table,
    "agreement of the configurations": order_table,
    "main effects": main_effects_table,
    "noise": noise_table,
    "sub-pixel": subpixel_table,
    "methods": fragile_table,
    "best": best_table,
    "spread": spread_table,
    "baselines": baseline_table,
    "full resolution": full_table,
    "stopping": stopping_table,
}
"""Tables of docs/findings.md by name."""


# Phrases ------------------------------------------------------------------------------------------


def over(response: str, **levels: int) -> str:
    """Mean of a response over the runs with some levels."""
    chosen = np.logical_and.reduce([runs()[key].astype(int) == at for key, at in levels.items()])
    return f"{runs().loc[chosen, response].mean():.1f}"


def scattered(response: str) -> pd.DataFrame:
    """Configurations whose worst replicate errs three times as much as the best."""
    cells = runs().groupby("config")[response].agg(["min", "max"])
    return cells[cells["max"] > 3 * cells["min"]]


def interactions(response: str, factor: str) -> tuple[int, int]:
    """How many interactions of a factor are negative, and of how many."""
    sizes = [e.effect for e in analysis(response).effects if factor in e.term and len(e.term) > 1]
    return sum(effect < 0 for effect in sizes), len(sizes)


def phrases() -> list[str]:
    """Parts of sentences that hold a number."""
    table = runs()
    states = table["state"].value_counts()
    hours = table["seconds"].sum() / 3600
    raw = {key: significant(analysis(key)) for key in GROUPS}
    log = {key: significant(analysis(key, "log")) for key in GROUPS}
    sentences = [
        f"{len(table)} runs, {states.get('done', 0)} done",
        f"{hours:.1f} hours of one core",
        f"at the centre of the image errs by {stuck():.1f} px here",
        # the encoder under noise
        f"(C = 1, F = 1) the encoder errs by {over('enc_avg', B=0, C=1, F=1)} px with B = 0 and "
        f"{over('enc_avg', B=1, C=1, F=1)} px with B = 1, and by {over('enc_avg', C=1, F=0)} px on "
        "clean videos",
        # the physics losses
        f"with C = 1 the decoder errs by {over('dec_avg', C=1, E=0, F=0)} px without E and "
        f"{over('dec_avg', C=1, E=1, F=0)} px with it",
        "with B = 1, C = 1, E = 0 on clean videos the decoder errs by "
        f"{over('dec_avg', B=1, C=1, D=0, E=0, F=0)} px without D and "
        f"{over('dec_avg', B=1, C=1, D=1, E=0, F=0)} px with D",
        "With B = 1 and C = 1 the decoder errs by "
        f"{over('dec_avg', B=1, C=1, E=0, F=1)} px without E under noise and "
        f"{over('dec_avg', B=1, C=1, E=1, F=1)} px with E under noise",
        f"B28 from {over('B28', C=1, D=0, E=1, F=0)} px to {over('B28', C=1, D=1, E=1, F=0)} px "
        f"and leaves P28 at {over('P28', C=1, D=1, E=1, F=0)} px",
        # the gradient through the heatmaps
        "on clean videos the decoder errs by "
        f"{over('dec_avg', A=0, B=1, C=1, F=0)} px with A = 0 and "
        f"{over('dec_avg', A=1, B=1, C=1, F=0)} px with A = 1",
        # four configurations at full resolution
        f"B112 of row 7 on validation falls from {full_course('000-r1', 'B112')[3]:.1f} px at the "
        f"fourth epoch to {full_course('000-r1', 'B112')[7]:.1f} px at the eighth",
        "(row 23), physics positions err by "
        f"{full_error(23, 'P112'):.2f} and {full_error(23, 'P224'):.2f} px",
        # an encoder that nothing trains
        "(row 0: no gradient of any loss reaches it) errs by "
        f"{over('enc_avg', A=0, B=0, C=0, D=0, E=0, F=0)} px untrained",
    ]
    for key, name in NAMES.items():
        mains = [term for term in effects(key) if len(term) == 1]
        lower, of = interactions(key, "E")
        cells = scattered(key)
        profile = analysis(key).diagnostics.boxcox
        open_terms = [
            r.term for r in analysis(key, robust=True).estimates["robust"].rows if not r.agree
        ]
        both = [cells.index.str.contains(f"C{level}").sum() for level in (0, 1)]
        sentences += [
            f"Only in pixels, {name}: {listed(raw[key] - log[key])}.",
            f"Only on the log scale, {name}: {listed(log[key] - raw[key])}.",
            f"main effects on the {name} by size: {', '.join(mains)}",
            f"{lower} of the {of} interactions of E are negative for the {name}",
            f"{len(cells)} configurations ({both[0]} with C = 0, {both[1]} with C = 1) for the "
            f"{name}",
            f"they disagree on {listed(open_terms)} for the {name}",
            f"λ = {number(profile.exponent)} ({number(profile.low)} to {number(profile.high)}) for "
            f"the {name}",
        ]
    return sentences


if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"\n{name}\n{table()}")
    print("\nrows for docs/paper.md\n" + rows_table(), "\n", *phrases(), sep="\n")
