"""`doe suggest`: a design for a number of factors and a budget, without a study file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import JsonOption

if TYPE_CHECKING:
    from doe.study.values import Study


def suggest(
    factors: Annotated[int, typer.Option(min=1, max=11, help="Number of factors.")],
    budget: Annotated[str, typer.Option(help="Runs (24) or time (40h).")],
    run_time: Annotated[str | None, typer.Option(help="Time of a run: 90s, 2h.")] = None,
    slots: Annotated[int, typer.Option(min=1, help="Runs at once, for a budget in time.")] = 1,
    json: JsonOption = False,
) -> None:
    """Suggest a design that fits a budget, and sketch its file."""
    from rich.text import Text

    from doe.results.budget import known_of, offers, read_budget, suggestion, two_levels
    from doe.views.plan_tables import budget_json, budget_tables
    from doe.views.terminal import console, print_json, print_table

    study = two_levels(factors)
    known = known_of(None, study, run_time, None, slots)
    found = offers(study, read_budget(budget), known)
    number, reason = suggestion(found)
    if json:
        chosen = {"suggested": number + 1, "reason": reason, "sketch": sketch(found[number].study)}
        print_json(budget_json(found, known) | chosen)
        return
    screen = console()
    for table in budget_tables(found, known):
        print_table(table, screen)
    screen.print(Text(f"Suggested: {number + 1}, {found[number].design}. {reason}\n"))
    screen.out(sketch(found[number].study), highlight=False)


def sketch(study: Study) -> str:
    """Write the beginning of a study file with this design."""
    words = " ".join(f"--{key} {{{key}}}" for key in study.keys)
    lines = [
        'name = "my-study"',
        'backend = "command"',
        f'command = "python train.py {words} --seed {{seed}} --out {{run_dir}}"',
        f"replicates = {study.replicates}",
        *([f'fraction = "{study.fraction}"'] if study.fraction else []),
    ]
    if study.design:
        lines += ["[design]", *(f"{key} = {_toml(value)}" for key, value in study.design.items())]
    for key in study.keys:
        lines += [f"[factors.{key}]", 'low = "…"', 'high = "…"']
    lines += ["[responses]", 'metrics = ["loss"]', 'goal = "min"']
    if study.stopping:
        lines += ["[stopping]", f"max_replicates = {study.stopping.max_replicates}"]
    return "\n".join(lines)


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
