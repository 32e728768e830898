"""Start-up: CPU time of whole processes, and of a server until it serves."""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median
from typing import Final

from bench.serving import installed, server

COMMANDS: Final = {
    "python -c pass": ["-c", "pass"],
    "import pointsman": ["-c", "import pointsman"],
    "pointsman --help": ["-m", "pointsman", "--help"],
}
SERVE: Final = "pointsman serve, until it serves"
GOALS_MS: Final = {"import pointsman": 20, "pointsman --help": 60, SERVE: 800}


def startups(repetitions: int) -> dict[str, float]:
    """Return CPU per command in ms: medians, the commands take turns. The first turn only writes bytecode caches."""
    found: dict[str, list[float]] = {name: [] for name in (*COMMANDS, SERVE)}
    for turn in range(repetitions + 1):
        for name in found:
            spent = _serving_ms() if name == SERVE else _cpu_ms(COMMANDS[name])
            if turn:
                found[name].append(spent)
    return {name: median(times) for name, times in found.items()}


def _serving_ms() -> float:
    with server() as one:
        return 1000 * one.cold_s


def _cpu_ms(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=installed())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
