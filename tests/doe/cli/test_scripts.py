"""Small replicas of public scripts: how each is configured and where it leaves its numbers.

Each goes from `doe init` to results, with the hand edits that docs/scripts.md counts.
"""

import json
import re
import sys
import textwrap
from pathlib import Path

import pytest

from doe.cli.init import options_of
from doe.study.file import load_study
from tests.command_line import called

PYTHON = sys.executable


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def doe(*words, code=0):
    ended = called(*words)
    said = ended.stdout + ended.stderr
    assert ended.code == code, said
    return said


def write(name, text):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def edit(old, new):
    """A hand edit of the study file."""
    text = Path("study.toml").read_text()
    assert old in text
    Path("study.toml").write_text(text.replace(old, new))


def proposed(said):
    """The [metrics] table that `doe try` proposes."""
    return re.search(r"\[metrics\]\nfile.*?\n(?:keys.*\n)?", said, re.DOTALL)[0]


def results(tmp_path, count):
    doe("plan")
    doe("run", "--cpu", "2", "--limit", str(count))
    paths = sorted(tmp_path.glob("runs/*/*/result.json"))
    told = [json.loads(path.read_text()) for path in paths]
    assert [one["state"] for one in told] == ["done"] * count, told
    return [one["metrics"] for one in told]


DATACLASS = """
import argparse, os, struct, time
p = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
p.add_argument("--exp-name", default="ppo", help="the name of this experiment")
p.add_argument("--seed", type=int, default=1, help="seed of the experiment")
p.add_argument("--cuda", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("--torch-deterministic", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("--capture-video", action="store_true")
p.add_argument("--total-timesteps", type=int, default=500000, help="total timesteps")
p.add_argument("--learning-rate", type=float, default=2.5e-4, help="the learning rate")
p.add_argument("--gamma", type=float, default=0.99, help="the discount factor gamma")
p.add_argument("--batch-size", type=int, default=0, help="the batch size (computed in runtime)")
a = p.parse_args()
MESSAGE
folder = f"runs/{a.exp_name}__{a.seed}__{int(time.time())}"
os.makedirs(folder)
with open(f"{folder}/events.out.tfevents.{int(time.time())}.host", "wb") as file:
    for episode in range(30):
        print(f"global_step={episode}, episodic_return=[{episode}.]")
        value = message((1, b"charts/episodic_return"), (2, -1.0 * episode))
        event = message((2, episode), (5, message((1, value))))
        file.write(struct.pack("<Q", len(event)) + b"    " + event + b"    ")
"""
MESSAGE = """
def message(*fields):
    raw = b""
    for number, value in fields:
        if isinstance(value, int):
            raw += bytes([number << 3, value])
        elif isinstance(value, float):
            raw += bytes([number << 3 | 5]) + struct.pack("<f", value)
        else:
            raw += bytes([number << 3 | 2, len(value)]) + value
    return raw
"""


def test_events_of_a_reinforcement_learning_script(tmp_path):
    """As CleanRL's ppo.py: computed options, TensorBoard in runs/, a noisy last episode."""
    write("ppo.py", DATACLASS.replace("MESSAGE", MESSAGE))
    doe("init", "--metric", "episodic_return", "--", PYTHON, "ppo.py", "--no-cuda")
    study = load_study(tmp_path / "study.toml")
    assert study.keys == ("learning_rate", "gamma")
    assert [f.scale for f in study.factors] == ["log", "linear"]
    assert study.settings == {"total_timesteps": 500000}
    said = doe("try", code=3)
    table = proposed(said)
    assert 'file = "runs/*/events.out.tfevents.*"' in table
    assert "stdout: global_step, episodic_return" in said
    edit(
        '[metrics]\nfile = "metrics.json"\n', f'{table}reduce = {{ episodic_return = "mean 20" }}\n'
    )
    assert results(tmp_path, 2) == 2 * [{"episodic_return": -19.5}]


CONFIGURATOR = """
import os
out_dir = 'out'
eval_interval = 2000
dataset = 'shakespeare'  # which data
batch_size = 12  # if gradient_accumulation_steps > 1, this is the micro-batch size
dropout = 0.0  # for pretraining 0 is good
learning_rate = 6e-4  # max learning rate
weight_decay = 1e-1
beta1 = 0.9
max_iters = 3
device = 'cuda'
compile = True
dtype = 'bfloat16' if os.environ.get('X') else 'float16'
exec(open('configurator.py').read())
assert isinstance(dropout, float) and isinstance(batch_size, int) and device == 'cpu'
size = len(open(os.path.join('data', dataset)).read())
for step in range(max_iters):
    print(f"step {step}: train loss {1 / (step + 1):.4f}, val loss {learning_rate * size:.4f}")
open(os.path.join(out_dir, 'ckpt.pt'), 'w').close()
"""
OVERRIDES = """
import sys
from ast import literal_eval
for arg in sys.argv[1:]:
    key, val = arg.lstrip('-').split('=')
    try:
        val = literal_eval(val)
    except (SyntaxError, ValueError):
        pass
    assert type(val) == type(globals()[key])
    globals()[key] = val
"""


def test_globals_overridden_by_a_configurator(tmp_path):
    """As nanoGPT's train.py: no help, types are asserted, data beside the script."""
    write("train.py", CONFIGURATOR)
    write("configurator.py", OVERRIDES)
    write("data/shakespeare", "x" * 1000)
    given = ["--metric", "val_loss", "--metrics-file", "stdout"]
    said = doe("init", *given, "--", PYTHON, "train.py", "--compile=False")
    assert "does not use {seed}" in said
    study = load_study(tmp_path / "study.toml")
    assert study.keys == ("learning_rate", "batch_size", "weight_decay", "dropout")
    assert study.cwd == "."
    assert {"--out_dir={run_dir}", "--device={device}", "--compile=False"} <= {*study.command}
    lows = [f.low for f in study.factors]
    assert lows == [0.00018, 6, 0.03, 0.0]
    said = doe("try")
    assert "val_loss  " in said
    assert "wrote outside {run_dir}" not in said
    assert {m["val_loss"] for m in results(tmp_path, 4)} <= {0.18, 1.8}


def test_a_program_in_c(tmp_path):
    """As libsvm's svm-train: its usage on a wrong call, options before the file, a percentage."""
    write(
        "svm-train",
        """\
        #!/bin/sh
        [ "$1" = --help ] && exit 0
        [ $# -gt 2 ] || { printf 'Usage: svm-train [options] training_set_file\\noptions:\\n'
        printf '%s\\n' '-c cost : set C (default 1)' '-g gamma : set gamma (default 0.5)'
        exit 1; }
        for last; do :; done
        [ -f "$last" ] || exit 2
        echo "obj = -3.5, rho = 0.1"
        echo "Cross Validation Accuracy = 9$4.5%"
        """,
    ).chmod(0o755)
    write("heart_scale", "1 1:1\n")
    given = ["--metric", "accuracy", "--metrics-file", "stdout", "--factor", "cost=0.1,1,10"]
    doe("init", *given, "--factor", "gamma=1..4", "-n", "1", "--", "./svm-train", "heart_scale")
    study = load_study(tmp_path / "study.toml")
    assert study.command == ("./svm-train", "-c", "{cost}", "-g", "{gamma}", "heart_scale")
    assert study.sizes == (3, 2)
    assert {m["accuracy"] for m in results(tmp_path, 6)} == {91.5, 94.5}


HYDRA = """
import json
import hydra

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    accuracy = 0.5 + cfg.optimizer.lr + 0.1 * (cfg.model.kind == "wide") + cfg.seed / 1000
    json.dump({"test": {"accuracy": accuracy}}, open("results.json", "w"))

main()
"""


def test_the_configuration_of_hydra(tmp_path):
    """As programs built on Hydra: nested values, groups, a directory of its own."""
    pytest.importorskip("hydra")
    write("train.py", HYDRA)
    write("conf/config.yaml", "defaults:\n  - model: narrow\n  - _self_\nseed: null\n")
    with open("conf/config.yaml", "a") as file:
        file.write("optimizer:\n  lr: 0.01\n  name: adam\ndata_dir: data/\nepochs: 3\n")
    with open("conf/config.yaml", "a") as file:
        file.write("callbacks:\n  depth: 3\nscheduler:\n  _partial_: true\n")
    write("conf/model/narrow.yaml", "kind: narrow\nhidden_size: 64\n")
    write("conf/model/wide.yaml", "kind: wide\nhidden_size: 256\n")
    doe("init", "--metric", "accuracy", "--out", "all.toml", "--", PYTHON, "train.py")
    assert not re.search("depth|_partial_", Path("all.toml").read_text())  # instantiation, printing
    given = ["--metric", "accuracy", "--factor", "lr", "--factor", "model"]
    doe("init", *given, "--", PYTHON, "train.py")
    study = load_study(tmp_path / "study.toml")
    words = ["epochs={epochs}", "hydra.run.dir={run_dir}", "optimizer.lr={lr}", "model={model}"]
    assert {"seed={seed}", *words} <= {*study.command}
    assert [f.levels for f in study.factors] == [(0.003, 0.03), ("narrow", "wide")]
    edit('[metrics]\nfile = "metrics.json"\n', proposed(doe("try", code=3)))
    values = {round(m["accuracy"], 3) for m in results(tmp_path, 8)}
    assert values == {0.504, 0.505, 0.531, 0.532, 0.604, 0.605, 0.631, 0.632}


BOOSTING = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--eta", type=float, default=0.3, help="learning rate, range: 0 to 1")
p.add_argument("--max-depth", type=int, default=6)
p.add_argument("--subsample", type=float, default=0.5, help="in (0, 1]")
p.add_argument("--colsample-bytree", type=float, default=1.0, help="ratio (default: 1.0)")
p.add_argument("--nthread", type=int, default=4)
p.add_argument("--seed", type=int, default=0)
a = p.parse_args()
assert 0 < a.eta <= 1 and 0 < a.subsample <= 1 and a.nthread == 1
for i in range(3):
    print(f"accuracy: {0.9 - i / 10}")
    print(f"[{i}]\\ttrain-logloss:0.{9 - i}\\teval-logloss:{a.eta / 10 + a.seed / 100:.5f}")
"""


def test_rounds_of_boosting_on_the_output(tmp_path):
    """As scripts around XGBoost: shares that stay shares, a range in the help, a line per round."""
    write("boost.py", BOOSTING)
    given = ["--metric", "eval_logloss", "--metric", "accuracy", "--metrics-file", "stdout"]
    said = doe("init", *given, "-n", "1", "--", PYTHON, "boost.py")
    assert "Goal: min eval_logloss, max accuracy." in said
    study = load_study(tmp_path / "study.toml")
    assert {f.key: f.levels for f in study.factors} == {
        "eta": (0.09, 0.9),
        "max_depth": (3, 12),
        "subsample": (0.25, 0.75),
        "colsample_bytree": (0.5, 1.0),
    }
    assert study.responses.goals == {"accuracy": "max"}
    assert {m["eval_logloss"] for m in results(tmp_path, 4)} == {0.019, 0.1}


TRAINER = """
import argparse, json, os
p = argparse.ArgumentParser()
p.add_argument("--model_name_or_path", required=True)
p.add_argument("--output_dir", help="where results go")
p.add_argument("--learning_rate", type=float, default=5e-5)
p.add_argument("--per_device_train_batch_size", type=int, default=8)
p.add_argument("--num_train_epochs", type=float, default=3.0)
p.add_argument("--weight_decay", type=float, default=0.0)
p.add_argument("--seed", type=int, default=42)
p.add_argument("--report_to", default="none")
p.add_argument("--auto_find_batch_size", type=bool, default=False)
p.add_argument("--pad", type=bool, default=True, help="pad (default: True)")
p.add_argument("--no_pad", action="store_false", dest="pad")
p.add_argument("--trust_remote_code", type=bool, default=False)
p.add_argument("--ddp_timeout_factor", type=int, default=3)
a = p.parse_args()
history = [{"step": 1, "loss": 2.0}, {"step": 2, "eval_accuracy": 0.5 + a.seed / 100}]
json.dump({"log_history": history}, open(f"{a.output_dir}/trainer_state.json", "w"))
results = {"eval_accuracy": 0.5 + a.seed / 100, "epoch": 3}
json.dump(results, open(f"{a.output_dir}/all_results.json", "w"))
"""


def test_the_results_of_a_trainer(tmp_path):
    """As the example scripts of transformers: a required model, JSON in the output directory."""
    write("run_glue.py", TRAINER)
    given = ["--metric", "accuracy=eval_accuracy", "--metrics-file", "all_results.json"]
    doe("init", *given, "--", PYTHON, "run_glue.py", "--model_name_or_path", "tiny")
    study = load_study(tmp_path / "study.toml")
    assert study.keys == ("learning_rate", "per_device_train_batch_size", "weight_decay")
    further = re.findall(r"^# \[factors.(\w+)\]", Path("study.toml").read_text(), re.MULTILINE)
    assert further == ["pad"]
    assert {"{run_dir}", "{seed}"} <= {*study.command}
    assert {m["accuracy"] for m in results(tmp_path, 16)} == {0.51, 0.52}


HISTORY = """
import argparse, csv
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, required=True, help="step size")
p.add_argument("--units", type=int, required=True)
a = p.parse_args()
print("1/1 - 0s - accuracy: 0.9784 - loss: 0.0727 - val_accuracy: 0.9 - val_loss: 0.2")
with open("training.csv", "w") as file:
    rows = csv.writer(file)
    rows.writerow(["epoch", "accuracy", "val_accuracy"])
    rows.writerows([[0, 0.5, 0.6], [1, 0.7, 0.95], [2, 0.8, a.lr]])
"""


def test_a_history_in_a_csv_and_required_options(tmp_path):
    """As examples of Keras: required options are factors, the best epoch counts."""
    write("fit.py", HISTORY)
    doe("init", "--metric", "val_accuracy", "-n", "1", "--", PYTHON, "fit.py")
    study = load_study(tmp_path / "study.toml")
    assert [f.levels for f in study.factors] == [(0.001, 0.01), (64, 256)]
    said = doe("try", code=3)
    assert "stdout: " in said
    edit(
        '[metrics]\nfile = "metrics.json"\n',
        '[metrics]\nfile = "training.csv"\nreduce = { val_accuracy = "best" }\n',
    )
    assert results(tmp_path, 4) == 4 * [{"val_accuracy": 0.95}]


def test_a_shell_script_with_variables(tmp_path):
    """As recipes in shell: configured by the environment, its result on the last line."""
    write("train.sh", 'echo "recall: $LR"; ./bin/score "P@1 $(echo $SEED)5"; echo > $1/model\n')
    write("bin/score", 'echo "$@"\n').chmod(0o755)
    given = ["--factor", "lr=0.1,0.5", "--metric", "p1=P@1", "--metrics-file", "stdout"]
    doe("init", *given, "--", "sh", "train.sh", "{run_dir}", "{lr}", "{seed}")
    assert load_study(tmp_path / "study.toml").cwd == "."
    edit("replicates = 2", 'env = { LR = "{lr}", SEED = "{seed}" }\nreplicates = 2')
    assert {m["p1"] for m in results(tmp_path, 4)} == {15.0, 25.0}


def test_a_script_that_cannot_start_shows_its_own_error(tmp_path):
    """As pytorch/examples' mnist without torchvision."""
    write("main.py", "import argparse\nimport no_such_vision\n")
    said = doe("init", "--metric", "loss", "--", PYTHON, "main.py", code=1)
    assert "ModuleNotFoundError: No module named 'no_such_vision'; fix that first" in said
    assert "without help" not in said


def test_files_written_outside_are_named(tmp_path):
    write(
        "t.py",
        f"import sys\nopen({str(tmp_path / 'results.json')!r}, 'w').write('1')\nprint('y 1')\n",
    )
    given = ["--metric", "y", "--metrics-file", "stdout", "--factor", "a=1,2"]
    doe("init", *given, "--", PYTHON, "t.py", "{a}", "{seed}")
    said = " ".join(doe("try").split())
    assert "it wrote outside {run_dir}" in said
    assert "results.json" in said


def test_an_environment_beside_the_script_is_proposed(tmp_path, monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(PYTHON)
    write("t.py", "print('y 1')\n")
    given = ["--metric", "y", "--metrics-file", "stdout", "--factor", "a=1,2"]
    doe("init", *given, "--", "python", "t.py", "{a}", "{seed}")
    assert load_study(tmp_path / "study.toml").python == "venv/bin/python"


CONSTANTS = """
import numbers
SEED = 0
LEARNING_RATE = 0.1  # step size
NUM_CLASSES = 10
params = {"objective": "regression", "metric": {"l1", "l2"}, "num_leaves": 31}
print("The RMSE of prediction is:", LEARNING_RATE + params["num_leaves"] + SEED / 1000)
"""


def test_numbers_in_the_text_of_a_script(tmp_path):
    """As demonstrations of LightGBM, JAX and Keras: no options at all; one line is added."""
    path = write("simple.py", CONSTANTS)
    given = ["--metric", "rmse=RMSE of prediction is", "--metrics-file", "stdout", "-n", "1"]
    said = doe("init", *given, "--", PYTHON, "simple.py", code=1)
    line = said.strip().partition("repeat: ")[2]
    path.write_text(path.read_text().replace("print(", f"{line}\nprint("))
    doe("init", *given, "--", PYTHON, "simple.py")
    study = load_study(tmp_path / "study.toml")
    assert study.keys == ("learning_rate", "num_leaves")
    assert {round(m["rmse"], 3) for m in results(tmp_path, 4)} == {16.031, 16.301, 62.031, 62.301}


BANANA = """
import sys
given = dict(word.split("=") for word in sys.argv[1:])
x, y = float(given["banana.x"]), float(given["banana.y"])
z = (1 - x) ** 2 + 100 * (y - x**2) ** 2
print(f"[2026-01-01][__main__][INFO] - Banana_Function(x={x}, y={y})={z}")
"""


def test_values_that_must_be_given(tmp_path):
    """As banana.py of Hydra's Ax plugin: nothing has a default, the result is behind a bracket."""
    write("banana.py", BANANA)
    given = ["--metric", r"z=Banana_Function\(.*\)", "--metrics-file", "stdout", "-n", "1"]
    given += ["--factor", "x=-1,1", "--factor", "y=-1,2"]
    doe("init", *given, "--", PYTHON, "banana.py", "banana.x={x}", "banana.y={y}")
    assert sorted(m["z"] for m in results(tmp_path, 4)) == [100.0, 104.0, 400.0, 404.0]


RNN = """
DIGITS = 3
LAYERS = 2
LINE
data = [0] * DIGITS
batch_size = 32
LINE
bar = "10/10 - 1s - accuracy: 0.1 - loss: 2.0"
print(f"{bar}\\r{bar} - val_accuracy: {len(data) / batch_size} - val_loss: 1.0")
"""


def test_numbers_that_a_script_has_read_already(tmp_path):
    """As Keras' addition_rnn.py: a line does not set what is read before it; two of them do."""
    line = 'import sys; exec("\\n".join(sys.argv[1:]))'
    path = write("rnn.py", RNN.replace("LINE\n", "", 1).replace("LINE", line))
    assert [o.key for o in options_of(["rnn.py"], path)] == ["layers", "batch_size"]
    path = write("rnn.py", RNN.replace("LINE", line))
    assert [o.key for o in options_of(["rnn.py"], path)] == ["digits", "layers", "batch_size"]
    given = ["--metric", "val_accuracy", "--metrics-file", "stdout", "--factor", "batch_size=16,64"]
    doe("init", *given, "--factor", "digits=2,4", "-n", "1", "--", PYTHON, "rnn.py")
    found = sorted(m["val_accuracy"] for m in results(tmp_path, 4))
    assert found == [2 / 64, 4 / 64, 2 / 16, 4 / 16]
