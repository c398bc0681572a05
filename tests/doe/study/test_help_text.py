"""Options read from help texts as programs print them."""

import pytest

from doe.errors import DoeError
from doe.study.draft import draft_command
from doe.study.help_text import Option, around, is_candidate, parse_factor, propose, read_options

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
        ("shift", "-4", ()),
        ("dropout", "0.0", (0.0, 0.1)),
        ("dropout", "0.2", (0.1, 0.4)),
        ("momentum", "0.9", (0.8, 0.95)),
        ("momentum", "0.5", (0.25, 0.75)),
        ("warm", "false", (False, True)),
        ("warm", "True", ("False", "True")),
        ("kind", "plain", ()),
        ("kind", "", ()),
        ("top-k", "-1", ()),
        ("kind", "inf", ()),
        ("subsample", "0.5", (0.25, 0.75)),
        ("subsample", "0.8", (0.6, 0.9)),
        ("gae-lambda", "0.95", (0.9, 0.975)),
        ("clip-coef", "0.2", (0.1, 0.4)),
        ("weight-decay", "0.0", (0.0, 0.01)),
        ("weight-decay", "0.1", (0.03, 0.3)),
        ("learning-rate", "1.0", (0.3, 3.0)),
        ("cost", "1", (0.3, 3.0)),
        ("ent-coef", "0.01", (0.003, 0.03)),
        ("temperature", "2.0", (1.0, 4.0)),
    ],
)
def test_levels_lie_around_the_default(name, default, levels):
    assert around(Option(f"--{name}", False, default=default)) == levels


@pytest.mark.parametrize(
    ("name", "default", "scale"),
    [
        ("lr", "0.01", "log"),
        ("weight_decay", "1e-4", "log"),
        ("ema_decay", "0.99", ""),
        ("weight_decay", "0.0", ""),
        ("batch_size", "64", ""),
        ("dropout", "0.1", ""),
    ],
)
def test_rates_and_decays_are_on_a_log_scale(name, default, scale):
    assert propose(Option(f"--{name}", False, default=default)).scale == scale


@pytest.mark.parametrize(
    ("description", "levels"),
    [
        ("strength in [0, 1] (default: 0.8)", (0.6, 0.9)),
        ("how many, from 1 to 5 (default: 4)", (2, 5)),
        ("between 3 and 4 (default: 4)", (3, 4)),
        ("0 <= x <= 3 (default: 2.0)", (1.0, 3.0)),
        ("temperature, (0, 3) (default: 2.0)", (1.0, 2.97)),
        ("range: 4-4.5 (default: 4)", (4, 4)),
    ],
)
def test_a_range_in_the_help_is_kept(description, levels):
    (option,) = read_options(f"usage: t [-h]\n\noptions:\n  --knob N  {description}\n")
    proposed = propose(option).levels
    assert proposed == (levels if len(set(levels)) > 1 else ())


NO_FACTORS = (
    "cuda no_cuda render capture_video track torch_deterministic cudnn_deterministic data_dir port "
    "host log_interval exp_name wandb_project_name env_id num_workers save_model dry_run "
    "eval_iters dtype compile backend test_batch_size verbosity report_to push_to_hub seed device "
    "out_dir total_timesteps num_train_epochs master_port overwrite_output_dir"
)


@pytest.mark.parametrize("name", NO_FACTORS.split())
def test_what_is_no_factor(name):
    assert not is_candidate(Option(f"--{name}", False, default="1"))


def test_what_the_program_computes_itself_is_no_factor():
    text = "the batch size (computed in runtime) (default: 0)"
    (option,) = read_options(f"usage: t [-h]\n\noptions:\n  --batch-size INT  {text}\n")
    assert not is_candidate(option)
    assert "--batch-size" not in draft_command(["t"], [option, LR]).command


LR = Option("--lr", False, default="0.01")


def test_the_most_promising_come_first_and_others_are_comments():
    names = "tau vocab depth momentum zeta batch-size lr dropout weight-decay"
    options = [Option(f"--{name}", False, default="0.25") for name in names.split()]
    draft = draft_command(["t"], options)
    assert [f.key for f in draft.factors] == ["lr", "batch_size", "weight_decay", "dropout"]
    assert {f.key for f in draft.further} == {"depth", "momentum", "tau", "vocab", "zeta"}


def test_required_options_are_factors():
    text = "usage: t [-h] --lr LR --units N --flavour F\n\noptions:\n"
    text += "".join(f"  --{name} X  it\n" for name in ("lr", "units", "flavour"))
    draft = draft_command(["t"], read_options(text))
    assert [(f.key, f.levels) for f in draft.factors] == [
        ("lr", (0.001, 0.01)),
        ("units", (64, 256)),
    ]
    assert "--flavour EDIT-ME" in draft.command
    (alone,) = draft_command(["t"], [read_options(text)[-1]]).factors
    assert (alone.key, alone.levels) == ("flavour", ())


UNIX = """Usage: svm-train [options] training_set_file [model_file]
options:
-s svm_type : set type of SVM (default 0)
\t0 -- C-SVC\t\t(multi-class classification)
-g gamma : set gamma in kernel function (default 1/num_features)
-c cost : set the parameter C of C-SVC (default 1)
-v n: n-fold cross validation mode
-q : quiet mode (no outputs)
"""


def test_the_usage_of_a_program_in_c(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heart").write_text("1 1:1\n")
    options = {option.name: option for option in read_options(UNIX)}
    assert set(options) == {"svm_type", "gamma", "cost", "v", "q"}
    assert options["q"].switch
    draft = draft_command(["./svm-train", "-v", "5", "heart"], options.values())
    assert draft.factors[0].key == "cost"
    assert draft.command.startswith("./svm-train -v 5 -c {cost}")
    assert draft.command.endswith(" heart")


ABSL = """
train.py:
  --batch_size: Batch size
    (default: '256')
    (an integer)
  --[no]dpsgd: If True, train with
    noise.
    (default: 'true')
  --learning_rate: Learning rate
    (default: '0.15')
    (a number)

Try --helpfull to get a list of all flags.
"""


def test_the_flags_of_absl():
    options = {option.name: option for option in read_options(ABSL)}
    assert {name: option.default for name, option in options.items()} == {
        "batch_size": "256",
        "dpsgd": "true",
        "learning_rate": "0.15",
    }
    assert propose(options["dpsgd"]).use == "{no_dpsgd:--nodpsgd}"
    assert propose(options["learning_rate"]).levels == (0.045, 0.45)


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
    assert [(f.key, f.levels) for f in draft.factors] == [
        ("lr", (0.1, 0.2)),
        ("optimizer", ("sgd", "adam")),
    ]
    assert not draft.further


@pytest.mark.parametrize(
    ("text", "levels", "scale"),
    [
        ("c=0.1,1,10", (0.1, 1, 10), ""),
        ("lr=1e-4..1e-1:log", (1e-4, 1e-1), "log"),
        ("lr=0..1", (0, 1), ""),
        ("lr=1,10,100:log", (1, 10, 100), "log"),
        ("optimizer=sgd,adam,lion", ("sgd", "adam", "lion"), ""),
    ],
)
def test_any_number_of_levels_or_a_range(text, levels, scale):
    proposal = parse_factor(text)
    assert (proposal.levels, proposal.scale) == (levels, scale)


@pytest.mark.parametrize("text", ["lr=a..b", "lr=1..2:logg", "lr=1..2..3", "opt=a,b:log", "lr=1,"])
def test_a_range_that_is_none(text):
    with pytest.raises(DoeError, match=r"expected a range of numbers|expected two levels"):
        parse_factor(text)
