"""Planning: from a study to its directory, and from the directory back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from doe.design.changes import augmented, planned_replicates
from doe.design.runs import Design, Run, extended_design, make_design, stage_executions
from doe.design.table import design_csv, design_digest, design_request, read_design
from doe.errors import DoeError
from doe.store.files import StudyDir, read_file, write_atomic
from doe.store.requests import prepare, request_bytes
from doe.store.scan import RunStatus, scan
from doe.study.checks import check_study
from doe.study.file import (
    FROZEN,
    dump_study,
    frozen_table,
    parse_study,
    planned_study,
    read_toml,
    study_differences,
)
from doe.study.values import ENGINES, STUDY_FILE, Stopping, Study

RUNS = Path("runs")
"""Default parent directory of studies."""

Outcome = Literal["created", "unchanged", "completed", "replanned", "amended", "augmented"]


class Plan(NamedTuple):
    """A study with its design, as planned in a directory."""

    directory: Path
    study: Study
    design: Design

    @property
    def files(self) -> StudyDir:
        """All names in its directory."""
        return StudyDir(self.directory)

    @property
    def stages(self) -> tuple[Run, ...]:
        """The executions of stages that its runs need."""
        return stage_executions(self.study, self.design.runs)

    @property
    def everything(self) -> tuple[Run, ...]:
        """Everything to execute: stages, then runs."""
        return (*self.stages, *self.design.runs)

    def requests(self) -> dict[str, bytes]:
        """Return the request of each run, and of each execution of a stage."""
        return {run.run_id: request_bytes(self.study, run) for run in self.everything}

    def scan(self) -> list[RunStatus]:
        """Read the present state of every run, in run order."""
        return scan(self.files, self.design.runs)


def write_plan(study: Study, directory: Path) -> tuple[Plan, Outcome]:
    """Write study.toml and design.csv; an identical plan keeps its words.

    A different one takes its place as long as no run has begun, or where every run is the same:
    then it differs in words, units or the report alone.

    Raises
    ------
    DoeError
        If another study with runs or an edited design is there; says what differs.
    """
    check_study(study)
    with contextlib.suppress(OSError):  # writing reports it better
        directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        plan, outcome = _write_plan(study, directory)
    if outcome == "unchanged" and complete_design(plan):
        outcome = "completed"
    return plan, outcome


def _write_plan(study: Study, directory: Path) -> tuple[Plan, Outcome]:
    files = StudyDir(directory)
    if not files.study.exists():
        if files.design.exists():
            raise DoeError(f"{files.design} exists without study.toml; move it away first")
        plan = Plan(directory, study, make_design(study))
        _write(plan)
        return plan, "created"
    planned = load_plan(directory)
    if not planned.study.cwd:  # from an earlier version
        study = msgspec.structs.replace(study, cwd="")
    if differences := study_differences(planned.study, study):
        return _replace_plan(planned, study, differences)
    with contextlib.suppress(OSError):  # a read-only study
        files.study.touch()  # makes it the last planned for `find_study`
    return planned, "unchanged"


def _replace_plan(old: Plan, study: Study, differences: list[str]) -> tuple[Plan, Outcome]:
    """Replace a plan by another that contradicts it in no run."""
    files = old.files
    same = design_request(old.study) == design_request(study)
    new = Plan(old.directory, study, old.design if same else make_design(study))
    if _same_runs(old, new):
        _write(new)
        return new, "amended"
    with _exclusive(files.study) as unused:
        begun = _begun(old)
        handed_over = any(files.engine(name).exists() for name in ENGINES)
        if begun or handed_over or not unused:
            raise _refusal(old, study, differences, len(begun), not unused)
        with contextlib.suppress(OSError):  # what cannot be removed cannot be written either
            files.design.unlink()  # removed first, so that it never accompanies the new study
        _write(new)
        # A scheduler reads the study after it wrote a request, and a worker reads its request after
        # it took its lease: a process that began meanwhile is seen here, or sees this and stops.
        for run in old.everything:
            with contextlib.suppress(OSError):
                files.run(run.run_id).request.unlink()
        if begun := _begun(old):
            files.design.unlink(missing_ok=True)
            _write(old)
            for status in begun:
                prepare(files.run(status.run.run_id), old.study, status.run)
            raise _refusal(old, study, differences, len(begun))
        for run in old.everything:
            with contextlib.suppress(OSError):
                files.run(run.run_id).path.rmdir()
    return new, "replanned"


def _refusal(
    old: Plan, study: Study, differences: list[str], begun: int, in_use: bool = False
) -> DoeError:
    """Explain why another plan stays as it is."""
    listing = "\n".join(f"  - {line}" for line in differences)
    kinds = "runs and executions of stages" if old.stages else "runs"
    reason = f"of which {begun} of {len(old.everything)} {kinds} have begun"
    if in_use and not begun:
        reason = "which a `doe run` is executing now"
    return DoeError(
        f"{old.directory} holds another plan, {reason}, so it stays as it is. What differs:\n"
        f"{listing}\n{_way_out(old, study)}"
    )


def _same_runs(old: Plan, new: Plan) -> bool:
    """Return whether two plans have the same runs in the same order, whatever else differs."""
    return old.design == new.design and old.requests() == new.requests()


def _begun(plan: Plan) -> list[RunStatus]:
    """Return runs for which a lease was taken or anything else was written."""
    statuses = scan(plan.files, plan.everything)
    return [s for s in statuses if s.result or s.lease or s.damaged or s.problem]


def _way_out(old: Plan, study: Study) -> str:
    """Suggest what to do about a plan that contradicts the runs of another."""
    planned = old.study
    wider = msgspec.structs.replace(study, replicates=planned.replicates, seeds=planned.seeds)
    more = study.replicates - planned.replicates
    if more > 0 and not study_differences(planned, wider):
        out = shlex.quote(str(old.directory))
        return (
            f"Only replicates were added: `doe plan --augment {more} --out {out}` adds them as "
            "new blocks with new seeds."
        )
    return (
        "Plan the new one under another name or in another directory, undo the edit, or move "
        f"{old.directory} away to begin again."
    )


def load_plan(directory: Path) -> Plan:
    """Load a planned study with its design, frozen by the digest in study.toml.

    Nothing is written: where a kill left design.csv missing or without its last blocks, the design
    is made again from the study and whole in the answer; `complete_design` puts it on disk. So is
    that of a study of format 1, which has no digest.
    """
    files = StudyDir(directory)
    if not files.study.exists():
        raise DoeError(f"{directory} holds no study.toml; plan a study with `doe plan`")
    for path in (files.study, files.design):
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise DoeError(f"{path} is not a plain file; restore it")
    data, text = _study_and_design(files)
    table = read_toml(data, str(files.study))
    study = planned_study(table, str(files.study))
    digest = table.get(FROZEN, {}).get("digest", "")
    if text and digest == design_digest(study, text):
        return Plan(directory, study, read_design(text, study))
    design = make_design(study)
    expected = design_csv(design)
    if not expected.startswith(text):
        raise _edited(files, text, expected)
    if digest not in ("", design_digest(study, expected)):
        raise DoeError(
            f"{files.study} was changed by hand after planning: it no longer has the digest that "
            f"it froze beside {files.design.name}. Restore both, or plan the change under another "
            "name; `doe plan --augment` adds runs to a study"
        )
    return Plan(directory, study, design)


def complete_design(plan: Plan) -> bool:
    """Write design.csv if a kill left it missing or without its last blocks.

    One that another process has made longer than `plan` meanwhile stays as it is.
    """
    files = plan.files
    expected = design_csv(plan.design)
    with _alone(plan.directory):
        text = _design_text(files)
        if text == expected or not expected.startswith(text):
            return False
        write_atomic(files.design, expected)
        return True


def planned_studies() -> list[Path]:
    """List the directories of all studies below runs/, the one planned last at the end."""
    return [file.parent for file in sorted(RUNS.glob(f"*/{STUDY_FILE}"), key=_planned_at)]


def _planned_at(file: Path) -> int:
    return file.stat().st_mtime_ns


def find_study(named: Path | None) -> Path:
    """Return the study directory that was named, or the one below runs/ that was planned last."""
    if named is not None:
        return named.parent if named.name == STUDY_FILE else named
    studies = planned_studies()
    if not studies:
        raise DoeError(f"no study in {RUNS}/; plan one with `doe plan`, or name its directory")
    return studies[-1]


def augment_plan(directory: Path, kind: str, runs: int = 0, model: str = "") -> Plan:
    """Add runs to a planned study (`augmented`); what is planned or done stays."""
    return change_plan(directory, lambda study: augmented(study, kind, runs, model))


def extend_plan(directory: Path, replicates: int) -> Plan:
    """Return the plan with at least this many replicates; missing ones are added one by one."""

    def extended(study: Study) -> Study:
        missing = range(planned_replicates(study), replicates)
        return reduce(lambda longer, _: augmented(longer, "1"), missing, study)

    return change_plan(directory, extended)


def declare_plan(directory: Path, declared: Callable[[Study], Stopping]) -> Plan:
    """Return the plan with a stopping rule; an existing one stays."""

    def ruled(study: Study) -> Study:
        return study if study.stopping else msgspec.structs.replace(study, stopping=declared(study))

    return change_plan(directory, ruled)


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Change a plan one process at a time, if the file system can lock."""
    handle = os.open(directory, os.O_RDONLY) if directory.is_dir() else -1
    try:
        with contextlib.suppress(OSError):
            if handle >= 0:
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle >= 0:
            os.close(handle)


@contextlib.contextmanager
def _exclusive(study: Path) -> Iterator[bool]:
    """Lock schedulers out of a study file; False if one is at work (`PlanInUse`)."""
    with study.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            pass
        yield True


class PlanInUse:
    """A plan under execution: `doe plan` does not replace it, or `check` reports that it did."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._content = plan, b""
        self._locked: BinaryIO | None = None

    def check(self) -> None:
        """Compare the plan with study.toml.

        Raises
        ------
        DoeError
            If study.toml asks for other runs by now.
        """
        directory, study, _ = self._plan
        file = self._plan.files.study.open("rb")
        content = file.read()
        if content == self._content:
            file.close()
            return
        self.release()
        self._content, self._locked = content, file
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH)
        if not study_differences(study, parse_study(content, source=file.name)):
            return
        now = load_plan(directory)
        planned = now.requests()
        if any(planned.get(key) != raw for key, raw in self._plan.requests().items()):
            raise DoeError(
                f"{directory} was replanned meanwhile: no more runs of the former plan are "
                "started. `doe run` executes the new one"
            )

    def release(self) -> None:
        """Allow others to replace the plan."""
        if self._locked is not None:
            self._locked.close()
            self._locked = None


def change_plan(directory: Path, changed: Callable[[Study], Study]) -> Plan:
    """Rewrite a planned study with what `changed` adds; every planned run stays."""
    with _alone(directory):
        old = load_plan(directory)
        study = changed(old.study)
        if study == old.study:
            return old
        check_study(study)
        steps = study.augment[len(old.study.augment) :]
        plan = Plan(directory, study, extended_design(study, old.design, steps))
        _write(plan)
        return plan


def _write(plan: Plan) -> None:
    # The study first: a missing or short design is completed from it.
    text = design_csv(plan.design)
    frozen = frozen_table(design_digest(plan.study, text))
    write_atomic(plan.files.study, dump_study(plan.study) + frozen)
    write_atomic(plan.files.design, text)


def _study_and_design(files: StudyDir) -> tuple[bytes, str]:
    """Read study.toml and design.csv as of one moment, even if others are writing.

    A design that was read while the study stayed the same is the study's, or a beginning of it:
    a writer replaces the study first (`_write`), and removes a design that contradicts it before.
    """
    study = _study_bytes(files)
    while True:
        design, before = _design_text(files), study
        study = _study_bytes(files)
        if study == before:
            return study, design


def _study_bytes(files: StudyDir) -> bytes:
    try:
        return read_file(files.study)
    except OSError as error:
        raise DoeError(f"cannot read {files.study}: {error.strerror}") from error


def _design_text(files: StudyDir) -> str:
    """Read design.csv; empty if there is none."""
    try:
        return read_file(files.design).decode().replace("\r\n", "\n")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise DoeError(f"cannot read {files.design}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DoeError(f"cannot read {files.design}: {error}") from error


def _edited(files: StudyDir, text: str, expected: str) -> DoeError:
    """Explain where design.csv differs from the plan in study.toml."""
    pairs = zip(text.splitlines(), expected.splitlines(), strict=False)
    line = next((i for i, (a, b) in enumerate(pairs, start=1) if a != b), None)
    part = f"from line {line} on" if line else "by lines at its end"
    return DoeError(
        f"{files.design} does not match study.toml {part}; it is generated from study.toml and "
        "must not be edited. Restore it, or move it away and plan again: no result is touched."
    )
