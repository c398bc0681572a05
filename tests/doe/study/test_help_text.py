"""Options read from help texts as programs print them."""

import pytest

from doe.study.draft import around, draft_command, parse_factor, propose
from doe.study.help_text import Option, read_options

ARGPARSE = """usage: train.py [-h] [--lr LR] --data DATA [--optimizer {sgd,adam}]

Train it.

options:
  -h, --help            show this help message and exit
  --lr LR               learning rate (default: 0.01)
  -e EPOCHS, --epochs EPOCHS
                        number of epochs
                        to train (default: 14)
  -b, --batch-size N    input batch size for training (default: 64)
  --optimizer {sgd,adam}
                        which optimizer (default: sgd)
  --augment, --no-augment
                        augment it (default: True)
  --no-cuda             disables CUDA training
  --betas B1 B2 B3      betas
  --files [FILES ...]   many
  --data DATA           where the data is
  --dropout DROPOUT
"""
CLICK = """Usage: t.py [OPTIONS]

  Train.

Options:
  --lr FLOAT                  Learning rate.  [default: 0.01]
  --optimizer [sgd|adam]      [default: adam]
  --augment / --no-augment    Augment it.  [default: no-augment]
  --fast                      Go fast.
  -e, --epochs INTEGER RANGE  Epochs.  [default: 10; x>=1]
  --out PATH                  [required]
  --help                      Show this message and exit.
"""
RICH = """
 Usage: t.py [OPTIONS]

╭─ Options ──────────────────────────────────────────────────────────────────────╮
│ *  --out               PATH                   [required]                         │
│    --lr                FLOAT                  Learning rate. [default: 0.01]     │
│    --optimizer         [sgd|adam]             [default: adam]                    │
│    --augment           --no-augment           Augment it. [default: no-augment]  │
│    --epochs    -e      INTEGER RANGE [x>=1]   [default: 10]                      │
│    --fast                                     Go fast.                           │
│    --help                                     Show this message and exit.        │
╰──────────────────────────────────────────────────────────────────────────────────╯
"""


@pytest.mark.parametrize("text", [ARGPARSE, CLICK, RICH], ids=["argparse", "click", "rich"])
def test_each_form_is_read(text):
    options = {option.name: option for option in read_options(text)}
    assert not {"help", "betas", "files"} & set(options)
    assert (options["lr"].default, options["lr"].switch) == ("0.01", False)
    assert options["lr"].help.lower().startswith("learning rate")
    assert options["optimizer"].choices == ("sgd", "adam")
    assert options["augment"].switch
    assert options["augment"].negative == "--no-augment"
    assert options["epochs"].default in ("14", "10")
    assert not options["epochs"].switch
    needed = {name for name, option in options.items() if option.required}
    assert needed == ({"data"} if text == ARGPARSE else {"out"})


def test_what_only_argparse_has():
    options = {option.name: option for option in read_options(ARGPARSE)}
    assert options["batch_size"].default == "64"
    assert options["no_cuda"].switch
    assert options["dropout"].default == ""
    assert options["epochs"].help == "number of epochs to train"


@pytest.mark.parametrize(
    ("name", "default", "levels"),
    [
        ("lr", "0.01", (0.003, 0.03)),
        ("lr", "1e-3", (0.0003, 0.003)),
        ("batch_size", "64", (32, 128)),
        ("depth", "3", (2, 6)),
        ("depth", "1", (1, 2)),
        ("skip", "0", (0, 1)),
        ("shift", "-4", (-6, 0)),
        ("dropout", "0.0", (0.0, 0.1)),
        ("dropout", "0.2", (0.1, 0.4)),
        ("momentum", "0.9", (0.8, 0.95)),
        ("momentum", "0.5", (0.25, 0.75)),
        ("warm", "false", (False, True)),
        ("warm", "True", ("False", "True")),
        ("kind", "plain", ("plain", None)),
        ("kind", "", (None, None)),
        ("top-k", "-1", (-1, None)),
        ("kind", "inf", (None, None)),
    ],
)
def test_levels_lie_around_the_default(name, default, levels):
    assert around(Option(f"--{name}", False, default=default)) == levels


def test_a_switch_that_is_on_by_default_is_turned_off():
    option = Option("--augment", True, negative="--no-augment", default="True")
    proposal = propose(option)
    assert (proposal.key, proposal.use) == ("no_augment", "{no_augment:--no-augment}")
    assert propose(option._replace(default="no-augment")).use == "{augment:--augment}"


def test_the_command_fills_what_doe_knows_and_asks_for_the_rest():
    draft = draft_command(["python", "a {b}.py"], read_options(ARGPARSE))
    assert draft.command.startswith("python 'a {{b}}.py' --epochs {epochs} --data EDIT-ME")
    assert draft.settings == {"epochs": 14}
    assert [f.key for f in draft.factors] == ["lr", "batch_size", "optimizer", "no_augment"]
    assert [f.key for f in draft.further] == ["dropout"]
    assert "--data is required" in draft.edits[0]


def test_a_length_without_an_end_is_shown_and_no_default_is_empty():
    text = (
        "usage: t [-h]\n\noptions:\n  --max-steps N  steps (default: -1)\n  --name X  (default: )\n"
    )
    steps, name = read_options(text)
    assert (steps.default, name.default) == ("-1", "")
    draft = draft_command(["t"], [steps])
    assert (draft.command, draft.settings) == ("t --max-steps {max_steps}", {"max_steps": -1})


def test_options_that_are_given_are_left_alone():
    draft = draft_command(["t", "--data", "x", "--lr=0.5", "-e", "3"], read_options(ARGPARSE))
    assert draft.command.startswith("t --data x --lr=0.5 -e 3 ")
    assert "lr" not in [f.key for f in draft.factors]
    assert not draft.edits


def test_factors_may_be_chosen():
    asked = [parse_factor("lr=0.1,0.2"), parse_factor("optimizer")]
    draft = draft_command(["t"], read_options(ARGPARSE), asked)
    assert [(f.key, f.low, f.high) for f in draft.factors] == [
        ("lr", 0.1, 0.2),
        ("optimizer", "sgd", "adam"),
    ]
    assert not draft.further
