"""The tables of examples/better-pit say what its runs say."""

from pathlib import Path

import pytest
from scipy.stats import gmean

import doe

EXAMPLE = Path(__file__).parents[1] / "examples" / "better-pit"


@pytest.mark.parametrize(
    ("study", "responses"),
    [
        ("pit-better-confirm", ("B56", "H56", "P56", "V56")),
        ("pit-224-better", ("B224", "H224", "P224", "V224")),
    ],
)
def test_a_table_of_means_over_seeds(study, responses):
    runs = doe.load(EXAMPLE / "runs" / study).dropna(subset=list(responses))
    means = runs.groupby(["setting", "F"])[list(responses)].agg(gmean)
    lines = (EXAMPLE / "README.md").read_text(encoding="utf-8").splitlines()
    for (setting, noisy), row in means.iterrows():
        noise = "noisy" if noisy else "clean"
        numbers = " | ".join(f"{value:.3f}" for value in row)
        assert f"| {setting} | {noise} | {numbers} |" in lines
