"""Files that stand in the way of modules, and what is printed while Python starts."""

import pytest

from tests.command_line import called, doe

STUDY = """
name = "s"
backend = "mine:run"
[factors.A]
low = 0
high = 1
[responses]
metrics = ["y"]
"""
LOUD = "print('hello from', __file__)\n"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "mine.py").write_text("def run(request):\n    return {'y': 1.0}\n")
    doe("plan", "--out", "st", cwd=tmp_path)
    return tmp_path


def test_what_is_printed_while_python_starts_breaks_no_answer(place, monkeypatch):
    (place / "sitecustomize.py").write_text(LOUD)
    monkeypatch.setenv("PYTHONPATH", str(place))
    doe("run", "--study", "st", "--cpu", "1", cwd=place)


@pytest.mark.parametrize("name", ["doe.py", "random.py", "msgspec.py", "selectors.py"])
def test_a_file_with_the_name_of_a_module_is_not_in_our_way(place, name):
    (place / name).write_text(f"{LOUD}raise ImportError('shadowed')\n")
    doe("run", "--study", "st", "--cpu", "1", cwd=place)
    doe("try", "study.toml", cwd=place)


def test_a_file_that_stands_in_the_way_of_the_backend_is_named(place):
    (place / "calendar.py").write_text("raise RuntimeError('oops')\n")
    (place / "mine.py").write_text("import calendar\n")
    ended = called("run", "--study", "st", "--cpu", "1", cwd=place)
    assert ended.code == 1
    said = " ".join(ended.stderr.split())
    assert f"calendar.py in {place} shadows a module of that name" in said


def test_a_backend_module_that_prints_is_no_answer(place):
    (place / "mine.py").write_text(f"{LOUD}def run(request):\n    return {{'y': 1.0}}\n")
    doe("run", "--study", "st", "--cpu", "1", cwd=place)
