"""Resources of a Slurm job: the `[slurm]` table of a study, overridden by the command line."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

OURS = (
    *("--array", "-a", "--job-name", "-J", "--output", "-o", "--error", "-e", "--chdir", "-D"),
    *("--requeue", "--no-requeue", "--open-mode", "--parsable", "--wait", "-W", "--wrap"),
)
"""Options of sbatch that the engine sets itself, or that would break it."""
TIME = re.compile(r"\d+|\d+:\d\d(:\d\d)?|\d+-\d+(:\d\d){0,2}")


class Settings(msgspec.Struct, frozen=True):
    """Resources of each job; an omitted field is left to the cluster."""

    partition: Annotated[str, Meta(description="partition.")] = ""
    account: Annotated[str, Meta(description="account.")] = ""
    time: Annotated[
        str | int, Meta(description="time limit of a job, such as 90 (minutes) or 1:30:00.")
    ] = ""
    gres: Annotated[
        str, Meta(description="GPU of each job, such as gpu:1, gpu:a100:1 or shard:1.")
    ] = ""
    cpus: Annotated[int, Meta(description="cores of each job [default: the study's threads].")] = 0
    mem: Annotated[str | int, Meta(description="memory of each job, such as 16G.")] = ""
    jobs: Annotated[
        int, Meta(description="maximum number of jobs of an array at once; 0 for no limit.")
    ] = 0
    runs_per_job: Annotated[int, Meta(description="runs per job, executed in turn.")] = 1
    stop_before: Annotated[
        int, Meta(description="seconds before its time limit at which a run is asked to stop.")
    ] = 0
    extra: Annotated[tuple[str, ...], Meta()] = ()
    """Further options of sbatch, as in "--constraint=a100"."""
    setup: Annotated[tuple[str, ...], Meta()] = ()
    """Shell commands before the first run of a job, as in "module load cuda"."""

    @property
    def gpu(self) -> bool:
        """Return whether a job has a GPU or a share of one."""
        named = re.search(r"(^|,)(gres/)?(gpu|shard|mps)\b", self.gres)
        return bool(named) or any(re.match(r"--gpus|-G", line) for line in self.extra)

    @property
    def shared(self) -> bool:
        """Return whether other runs may use the same GPU."""
        return bool(re.search(r"(^|,)(gres/)?(shard|mps)\b", self.gres))

    def alone(self) -> Settings:
        """Return these settings with a whole GPU instead of a share."""
        whole = re.sub(r"\b(shard|mps)(:\w+)*", "gpu:1", self.gres)
        return msgspec.structs.replace(self, gres=whole)

    def options(self) -> list[str]:
        """Return the options of sbatch for these resources."""
        named = {
            "--partition": self.partition,
            "--account": self.account,
            "--time": str(self.time),
            "--gres": self.gres,
            "--cpus-per-task": str(self.cpus or ""),
            "--mem": str(self.mem),
            "--signal": f"B:TERM@{self.stop_before}" if self.stop_before else "",
        }
        return [*(f"{name}={value}" for name, value in named.items() if value), *self.extra]


def problem(key: str, value: Any) -> str:
    """Return what is wrong with a value, or an empty text."""
    match key:
        case "partition" | "account":
            return "" if re.fullmatch(r"\S+", value) else "expected one word"
        case "gres":
            each = r"[\w/]+(:[\w.-]+)?(:\d+[KMGT]?)?"
            fine = not value or bool(re.fullmatch(rf"{each}(,{each})*", value))
            return "" if fine else "expected name[:type][:count], as in gpu:1"
        case "time":
            fine = value > 0 if isinstance(value, int) else bool(TIME.fullmatch(value))
            return "" if fine else "expected minutes, H:MM:SS or D-HH:MM:SS"
        case "mem":
            fine = bool(re.fullmatch(r"\d+[KMGT]?", str(value)))
            return "" if fine else "expected megabytes, or a number with K, M, G or T"
        case "cpus" | "runs_per_job":
            return "" if value >= 1 else "expected at least 1"
        case "jobs":
            return "" if value >= 0 else "expected 0 for no limit, or more"
        case "stop_before":
            return "" if value >= 0 else "expected seconds, or 0 for no early stop"
        case "extra":
            return next(filter(None, map(_extra_problem, value)), "")
        case _:
            many = any("\n" in line for line in value)
            return "expected one command per line" if many else ""


def _extra_problem(line: str) -> str:
    if not re.fullmatch(r"--?\w[^\n]*", line):
        return f"{line!r} is not an option of sbatch; expected a form such as --constraint=a100"
    name = re.split(r"[= ]", line)[0]
    return f"{name} is set by the engine itself; remove it" if name in OURS else ""
