"""The numbers of docs/findings.md, from the committed studies: ``python -m docs.findings``.

Tables and phrases come out as they stand in the document, and those of docs/paper.md as they stand
there.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.stopping import replay
from doe import analyze, load
from doe.analysis.analyze import Analysis
from pit_model import baseline
from pit_model.config import Config
from pit_model.dataset import make_split

ROOT = Path(__file__).parent.parent
STUDY = ROOT / "runs" / "pit-small"
FULL = ROOT / "runs" / "pit-224-physics"
PER_FRAME = ROOT / "runs" / "pit-per-frame"
READINGS = ROOT / "examples" / "readings" / "runs"
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
FULL_SETTINGS = {"test_sequences": 24}
"""Those at full resolution."""
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
    """The runs at 224 pixels by row of the paper's table: A to E on."""
    table = load(FULL)
    return table.set_index(31 + 32 * table["F"].astype(int)).sort_index()


@cache
def per_frame() -> "pd.Series[float]":
    """Mean errors of configuration 63 trained and tested with noise of every frame."""
    table = load(PER_FRAME)
    return table.loc[table["F"].astype(bool), METRICS].mean()


@cache
def stuck() -> float:
    """Error of a tracker stuck at the centre on the test videos, px."""
    config = Config.from_settings(SETTINGS)
    position = make_split(config, "test").position
    return float((position - (config.image_size - 1) / 2).abs().mean())


def effects(response: str, transform: str = "none") -> dict[str, float]:
    """Effects of all terms without F, the largest first."""
    without_noise = [e for e in analysis(response, transform).effects if "F" not in e.term]
    return {e.term: e.effect for e in sorted(without_noise, key=lambda e: -abs(e.effect))}


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
    """Terms whose p, Holm-adjusted over all terms, is below the level."""
    return {e.term for e in analysed.effects if e.p_holm is not None and e.p_holm < analysed.alpha}


# How they are written -----------------------------------------------------------------------------


def p_text(p: float) -> str:
    """A p value, none of them 0."""
    return f"p = {p:.4f}" if p >= 0.0001 else "p < 0.0001"


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
    pixels = significant(analysis(response))
    logarithms = significant(analysis(response, "log"))
    terms = [*paper, *(term for term in list(here)[:10] if term not in paper)]
    body = [
        (
            term,
            f"{signed(paper[term])} px ({signed(100 * paper[term] / PAPER_STUCK, 0)} %)"
            if term in paper
            else "–",
            f"{signed(here[term])} px ({signed(100 * here[term] / stuck(), 0)} %)",
            f"{ranks[term]}",
            "yes" if term in pixels else "no",
            "yes" if term in logarithms else "no",
        )
        for term in terms
    ]
    head = ("term", "paper", "here", "rank, here", "p < 0.05", "on the log scale")
    return lines(head, body)


def agreement_table() -> str:
    """How the effects that the paper prints agree with ours."""
    body = []
    for response, name in NAMES.items():
        paper, here = paper_effects(response), effects(response)
        ours, theirs = [here[term] for term in paper], list(paper.values())
        rho = stats.spearmanr(theirs, ours)
        size = stats.spearmanr(np.abs(theirs), np.abs(ours))
        body.append(
            (
                name,
                f"{sum(np.sign(ours) == np.sign(theirs))} of 10",
                f"{len(set(paper) & set(list(here)[:10]))} of 10",
                f"{number(rho.statistic)} ({p_text(rho.pvalue)})",
                f"{number(size.statistic)} ({p_text(size.pvalue)})",
            )
        )
    head = ("effects", "same sign", "in our ten", "rank correlation", "of their sizes")
    return lines(head, body)


def order_table() -> str:
    """Rank correlation of the 64 cell means with the paper's, metric by metric."""
    body = []
    for kind, name in (("B", "B, soft"), ("H", "H, hard"), ("P", "P, physics")):
        metrics = [f"{kind}{scale}" for scale in (14, 28, 56)]
        rhos = [stats.spearmanr(paper_order(m), means()[m]).statistic for m in metrics]
        body.append((name, *map(number, rhos)))
    return lines(("", "coarse", "middle", "fine"), body)


def subpixel_table() -> str:
    """How many of the 32 configurations err by less than a pixel on average, clean and noisy."""
    parts = {"clean": means().loc[:31], "noisy": means().loc[32:]}
    body = [
        (videos, *(f"{int((part[metric] < 1).sum())}" for metric in METRICS))
        for videos, part in parts.items()
    ]
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


def full_table() -> str:
    """The configurations at the paper's 224 pixels, beside its own."""
    heads = list(THEIRS.values())
    rows = [
        (int(row), f"A1B1C1D1E1F{int(run['F'])}", run[heads]) for row, run in full_runs().iterrows()
    ]
    return beside_paper(heads, rows)


def epochs_table() -> str:
    """Errors on the validation videos at 224 pixels after each epoch."""
    body = []
    for row, run in full_runs().iterrows():
        epochs = pd.read_csv(FULL / run["run_id"] / "epochs.csv")
        body += [(f"{row}", metric, *map(number, epochs[metric])) for metric in ("B224", "P224")]
    return lines(("row", "error", *(f"{epoch + 1}" for epoch in epochs["epoch"])), body)


def baseline_table() -> str:
    """Motion masks beside PIT on the test videos of the study."""
    trained = {
        "clean": means().loc[31],
        "static noise": means().loc[63],
        "noise of every frame": per_frame(),
    }
    return beside_masks(SETTINGS, trained)


def full_baseline_table() -> str:
    """Motion masks beside PIT on the test videos at 224 pixels."""
    return beside_masks(
        FULL_SETTINGS, {"clean": full_runs().loc[31], "static noise": full_runs().loc[63]}
    )


def beside_masks(settings: Mapping[str, int], trained: Mapping[str, "pd.Series[float]"]) -> str:
    """Motion masks on some test videos, and PIT with all its losses beside them."""
    metrics = [f"{kind}{Config.from_settings(settings).image_size}" for kind in "BHP"]
    body = []
    for videos, errors in trained.items():
        config = Config.from_settings({**settings, **baseline.VIDEOS[videos]})
        methods = {**baseline.evaluate(config), "PIT, A1B1C1D1E1": errors}
        for method, values in methods.items():
            body.append((videos, method, *(number(values[metric]) for metric in metrics)))
    return lines(("videos", "method", *metrics), body)


def readings_table(response: str) -> str:
    """Readings of the paper beside A, B and noise: main effects, and the largest interactions."""
    every = analyze(READINGS, response, order=2).analysis.effects
    mains = [e for e in every if ":" not in e.term]
    pairs = sorted((e for e in every if ":" in e.term), key=lambda e: -abs(e.effect))[:5]
    body = []
    for effect in (*mains, *pairs):
        assert effect.ci_low is not None
        assert effect.ci_high is not None
        interval = f"{signed(effect.ci_low, 1)} to {signed(effect.ci_high, 1)}"
        sure = effect.p_holm is not None and effect.p_holm < 0.05
        body.append(
            (effect.term.replace(":", " × "), signed(effect.effect, 1), interval, "yes" * sure)
        )
    return lines(("term", "effect, px", "95 %", "Holm's p < 0.05"), body)


def readings_phrases() -> list[str]:
    """Parts of sentences of the findings of the readings."""
    table = load(READINGS)

    def mean(response: str, **levels: object) -> str:
        chosen = np.logical_and.reduce([table[key] == level for key, level in levels.items()])
        return f"{table.loc[chosen, response].mean():.1f}"

    sentences = [
        f"{len(table)} runs, {(table['state'] == 'done').sum()} done",
    ]
    for reading in ("with_A", "always"):
        off, on = (mean("dec_avg", A=a, decoder_losses=reading) for a in (False, True))
        sentences.append(f"with `{reading}` A takes the decoder from {off} to {on} px")
    for relu in ("all", "residual"):
        alive, pytorch = (
            mean("enc_avg", fuse_relu=relu, first_weights=w) for w in ("alive", "pytorch")
        )
        sentences.append(
            f"with the ReLU on `{relu}` the encoder errs by {alive} px with our first weights and "
            f"{pytorch} px with PyTorch's"
        )
    for relu in ("all", "residual"):
        lost = mean("enc_avg", A=True, B=False, F=True, fuse_relu=relu)
        kept = mean("enc_avg", A=True, B=True, F=True, fuse_relu=relu)
        sentences.append(f"A1B0 under noise {lost} px and A1B1 {kept} px with `{relu}`")
    return sentences


TABLES = {
    "effects on the encoder": lambda: effects_table("enc_avg"),
    "effects on the decoder": lambda: effects_table("dec_avg"),
    "agreement of the effects": agreement_table,
    "agreement of the configurations": order_table,
    "sub-pixel": subpixel_table,
    "baselines": baseline_table,
    "full resolution": full_table,
    "full resolution, epoch by epoch": epochs_table,
    "full resolution, baselines": full_baseline_table,
}
"""Tables of docs/findings.md by name."""


# Phrases ------------------------------------------------------------------------------------------


def over(response: str, **levels: int) -> str:
    """Mean of a response over the runs with some levels."""
    chosen = np.logical_and.reduce([runs()[key].astype(int) == at for key, at in levels.items()])
    return f"{runs().loc[chosen, response].mean():.1f}"


def interactions(response: str, factor: str) -> tuple[int, int]:
    """How many interactions of a factor are negative, and of how many."""
    sizes = [e.effect for e in analysis(response).effects if factor in e.term and len(e.term) > 1]
    return sum(effect < 0 for effect in sizes), len(sizes)


def alive(chosen: pd.DataFrame) -> int:
    """Runs whose encoder errs by less than half of what a stuck tracker does (H)."""
    return int((chosen["H14"] < stuck() / 2).sum())


def phrases() -> list[str]:
    """Parts of sentences that hold a number."""
    table = runs()
    states = table["state"].value_counts()
    noisy = table[table["C"].astype(bool) & table["F"].astype(bool)]
    dead = noisy["A"].astype(bool) & ~noisy["B"].astype(bool)
    by_seed = [alive(part) for _, part in noisy[~dead].groupby("seed")]
    shared = set.intersection(
        *(significant(analysis(key, scale)) for key in GROUPS for scale in ("none", "log"))
    )
    sentences = [
        f"{len(table)} runs, {states.get('done', 0)} done",
        f"at the centre of the image errs by {stuck():.1f} px here",
        # A and the decoder
        f"With C = 1 the decoder errs by {over('dec_avg', A=0, C=1)} px without A and "
        f"{over('dec_avg', A=1, C=1)} px with it",
        # the encoder under noise
        "Of the twelve noisy configurations with C = 1 outside A1B0 the encoder lives in "
        f"{', '.join(map(str, by_seed[:-1]))} and {by_seed[-1]} with the four seeds",
        f"with A1B0 in {alive(noisy[dead])} of 16 runs",
        f"they err by {over('enc_avg', B=0, C=1, F=1)} px with B = 0 and "
        f"{over('enc_avg', B=1, C=1, F=1)} px with B = 1, against {over('enc_avg', C=1, F=0)} px "
        "on clean videos",
        # the physics losses
        f"With A = 1 and C = 1 the decoder errs by {over('dec_avg', A=1, C=1, E=0)} px without E "
        f"and {over('dec_avg', A=1, C=1, E=1)} px with it",
        f"with A = 1 and C = 1 D takes it from {over('dec_avg', A=1, C=1, D=0, E=0)} to "
        f"{over('dec_avg', A=1, C=1, D=1, E=0)} px without E and from "
        f"{over('dec_avg', A=1, C=1, D=0, E=1)} to {over('dec_avg', A=1, C=1, D=1, E=1)} px with E",
        # an encoder that nothing trains
        "(row 0: no gradient of any loss reaches it) errs by "
        f"{over('enc_avg', A=0, B=0, C=0, D=0, E=0, F=0)} px untrained",
        f"By every method and for both errors: {listed(shared)}.",
        f"{replay(STUDY, ['dec_avg'], 2.0).runs} runs would have decided every effect on the "
        "decoder that is worth 2 px",
    ]
    for key, name in NAMES.items():
        raw, log = significant(analysis(key)), significant(analysis(key, "log"))
        best = analysis(key, "log").best
        first = best.cells[0].config
        mean = table.loc[table["config"] == first, key].mean()
        choices = table.groupby(table["config"].str.removesuffix("F0").str.removesuffix("F1"))
        over_both = choices[key].mean()
        sentences += [
            f"Only in pixels, {name}: {listed(raw - log)}.",
            f"Only on the log scale, {name}: {listed(log - raw)}.",
            f"With F, {name}: {listed(term for term in raw if 'F' in term)}.",
            f"{first} has the {name}'s best observed mean ({mean:.2f} px), and "
            f"{len(best.among_best) - 1} others are statistically tied with it",
            f"{over_both.idxmin()} has the {name}'s least mean error ({over_both.min():.2f} px)",
        ]
    return sentences


def paper_phrases() -> list[str]:
    """Parts of sentences of docs/paper.md: where its text says other than its tables and we."""
    sentences = []
    for key, name in NAMES.items():
        mains = [term for term in effects(key) if len(term) == 1]
        lower, of = interactions(key, "E")
        sentences += [
            f"main effects on the {name} by size: {', '.join(mains)}",
            f"{lower} of the {of} interactions of E are negative for the {name}",
        ]
    return sentences


if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"\n{name}\n{table()}")
    print("", *phrases(), "\nfor docs/paper.md", rows_table(), "", *paper_phrases(), sep="\n")
