import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from doe.errors import DoeError, SpecError
from doe.study.file import dump_study, load_study, parse_study, read_toml
from doe.study.presets import preset_names, preset_study

GOOD = """
name = "digits"
backend = "train:run"
replicates = 2
seeds = [1, 2]
fraction = "wd=lr:aug"
[settings]
epochs = 3
[factors.lr]
low = 0.001
high = 0.01
[factors.aug]
low = "off"
high = "on"
[factors.opt]
low = false
high = true
[factors.wd]
low = 0
high = 1
[responses]
metrics = ["accuracy", "loss"]
goal = "max"
[responses.averages]
both = ["accuracy", "loss"]
"""


def problems(text):
    with pytest.raises(SpecError) as caught:
        parse_study(text.encode())
    return caught.value.problems


def one_problem(text):
    (problem,) = problems(text)
    return problem


def test_a_good_study_is_read_whole():
    study = parse_study(GOOD.encode())
    assert study.keys == ("lr", "aug", "opt", "wd")
    assert study.factors[0].high == 0.01
    assert study.factors[2].low is False
    assert study.responses.goal == "max"
    assert study.responses.names == ("accuracy", "loss", "both")
    assert study.settings == {"epochs": 3}


def test_every_engine_may_have_a_table():
    study = parse_study(f"{GOOD}[ray]\ngpus_per_run = 0.5\n[slurm]\nmem = '8G'\n".encode())
    assert study.engines == {"slurm": {"mem": "8G"}, "ray": {"gpus_per_run": 0.5}}
    assert parse_study(dump_study(study).encode()) == study
    assert "ray = 3: expected a table [ray]" in one_problem(f"ray = 3\n{GOOD}")
    assert "did you mean 'slurm'" in one_problem(f"{GOOD}[slrum]\nmem = '8G'\n")


@pytest.mark.parametrize("preset", preset_names())
def test_writing_and_reading_give_the_same_study_and_the_same_bytes(preset):
    study = preset_study(preset)
    text = dump_study(study)
    assert parse_study(text.encode()) == study
    assert dump_study(parse_study(text.encode())) == text


def test_levels_keep_their_type():
    study = parse_study(dump_study(parse_study(GOOD.encode())).encode())
    assert [type(f.low) for f in study.factors] == [float, str, bool, int]


# One edit of the good study each, and what the message must name.
MISTAKES = [
    ("replicates = 2", "replicats = 2", ["replicats", "did you mean 'replicates'"]),
    ("low = 0.001", "nam = 'x'\nlow = 0.001", ["factors.lr.nam", "did you mean 'name'"]),
    ("high = 0.01", "high = 0.001", ["factors.lr", "two distinct levels", "0.001"]),
    ("high = 0.01", "high = inf", ["factors.lr.high", "finite"]),
    ("high = 1\n", "high = false\n", ["factors.wd", "two distinct levels"]),
    ("high = 1\n", "high = 1979-05-27\n", ["factors.wd.high"]),
    ("[factors.opt]", "[factors.loss]", ["'loss'", "factor key"]),
    ("[factors.opt]", "[factors.seed]", ["'seed'", "column or placeholder"]),
    ("[factors.opt]", "[factors.I]", ["factors.I", "mean"]),
    ("[factors.opt]", '[factors."a b"]', ["factors.a b", "word"]),
    ("seeds = [1, 2]", "seeds = [1]", ["seeds", "got 1 for 2"]),
    ("seeds = [1, 2]", "seeds = [7, 7]", ["seeds", "7 is listed 2 times"]),
    ("seeds = [1, 2]", "seeds = [-1, 2]", ["seeds", "-1"]),
    ("replicates = 2", "replicates = 0", ["replicates = 0", "at least 1"]),
    ("replicates = 2", "replicates = 1.5", ["replicates = 1.5", "int"]),
    ('both = ["accuracy", "loss"]', 'both = ["acuracy"]', ["averages.both", "'accuracy'"]),
    ('both = ["accuracy", "loss"]', "both = []", ["averages.both", "empty"]),
    ('both = ["accuracy", "loss"]', 'loss = ["accuracy"]', ["'loss'", "2 times"]),
    ('["accuracy", "loss"]\ngoal', '["loss", "loss", "accuracy"]\ngoal', ["'loss'", "2 times"]),
    ('goal = "max"', 'goal = "best"', ["responses.goal", "'best'"]),
    ('backend = "train:run"', 'backend = "train.run"', ["backend", "'train.run'", "function"]),
    ('backend = "train:run"', 'backend = "command"', ["command", "missing"]),
    ('backend = "train:run"', 'backend = "m:f"\ncommand = ["x"]', ["command", "remove one"]),
    ('"wd=lr:aug"', '"wd=lr:augment"', ["fraction", "'augment'"]),
    ('"wd=lr:aug"', '"lr=aug:opt, wd=lr:aug"', ["fraction", "lr"]),
    ('"wd=lr:aug"', '"wd"', ["fraction", "'='"]),
    ('name = "digits"', 'name = "../digits"', ["name", "'../digits'", "slash"]),
    ('name = "digits"', 'name = ".digits"', ["name", "dot"]),
    ('name = "digits"', 'name = ""', ["name", "1 to 100"]),
    ("epochs = 3", "epochs = nan", ["settings.epochs", "finite"]),
    ("epochs = 3", "epochs = 1979-05-27", ["settings.epochs", "dates"]),
    ("epochs = 3", "epochs = [1, {a = inf}]", ["settings.epochs[1].a", "finite"]),
    ("[settings]", 'blocks = "lr"\n[settings]', ["blocks", "main effect"]),
    ("[settings]", "augment = 3\n[settings]", ["augment", "array"]),
    ("[settings]", "[[augment]]\n[settings]", ["augment[0]", "expected one of"]),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_each_mistake_gets_one_message_that_names_it(old, new, said):
    assert old in GOOD
    message = one_problem(GOOD.replace(old, new))
    for part in said:
        assert part in message


def test_unknown_placeholder_of_a_command_is_named_with_the_nearest_one():
    command = 'backend = "command"\ncommand = ["train", "--lr={lrr}", "{aug} {opt} {wd}"]'
    message = one_problem(GOOD.replace('backend = "train:run"', command))
    assert "{lrr}" in message
    assert "'lr'" in message


def test_command_with_known_placeholders_is_accepted():
    command = 'backend = "command"\ncommand = ["t", "{lr}", "{aug}{opt}{wd}", "{run_dir}", "{{x}}"]'
    assert parse_study(GOOD.replace('backend = "train:run"', command).encode()).command[1] == "{lr}"


def test_several_mistakes_are_reported_together():
    text = GOOD.replace('name = "digits"', 'name = "a/b"').replace("replicates = 2", "replicates=9")
    text = text.replace("high = 0.01", "high = 0.001").replace('goal = "max"', "gaol = 1")
    found = "\n".join(problems(text))
    for part in ("name", "seeds", "factors.lr", "responses.gaol"):
        assert part in found


def test_missing_parts_are_named():
    found = "\n".join(problems(""))
    for part in ("name: missing", "backend: missing", "factors: missing", "responses: missing"):
        assert part in found


def test_duplicate_keys_are_a_clear_error():
    assert "TOML" in one_problem(GOOD.replace("[factors.aug]", "[factors.lr]"))
    assert "TOML" in one_problem(GOOD.replace("replicates = 2", "replicates = 2\nreplicates = 3"))


def test_too_many_runs_are_refused_before_they_are_built():
    factors = "".join(f"[factors.{key}]\nlow=0\nhigh=1\n" for key in "ABCDEFGHJKLMNOPQ")
    text = f'name="n"\nbackend="m:f"\nreplicates=3\n{factors}[responses]\nmetrics=["y"]\n'
    assert "take a fraction" in one_problem(text)


def test_unreadable_files_are_clear(tmp_path):
    with pytest.raises(DoeError, match="cannot read"):
        load_study(tmp_path / "absent.toml")
    with pytest.raises(DoeError, match="cannot read"):
        load_study(tmp_path)


# Fuzzing: any bytes give a Study or a DoeError ---------------------------------------------------

scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["F=ABC", "AB", "A=B", "command", "m:f", "{seed}", "{", "min"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["A", "B", "low", "high", "key", "seeds"]), inner),
    ),
    max_leaves=8,
)
KEYS = [*preset_study("paper").__struct_fields__, "unknown"]
tables = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)


def read_or_refuse(data):
    try:
        study = parse_study(data)
    except DoeError:
        return
    assert parse_study(dump_study(study).encode()) == study


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
@example(b"a = " + b"[" * 5000)
@example(b"a = 0x" + b"f" * 9000)
@example(b"replicates = 0x" + b"f" * 9000)
@example(b"replicates = 99999999999999")
def test_any_bytes_give_a_study_or_an_error(data):
    read_or_refuse(data)


@settings(max_examples=300, deadline=None)
@given(tables)
def test_any_table_gives_a_study_or_an_error(table):
    import tomli_w

    try:
        text = tomli_w.dumps(table).encode()
    except (ValueError, TypeError, UnicodeEncodeError):
        return
    read_or_refuse(text)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_of_a_good_study_gives_a_study_or_an_error(data):
    table = read_toml(GOOD.encode(), "good")
    place = table
    key = data.draw(st.sampled_from(sorted(place)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(values)
    try:
        text = msgspec.toml.encode(table)
    except (ValueError, TypeError, UnicodeEncodeError):
        return
    read_or_refuse(text)
