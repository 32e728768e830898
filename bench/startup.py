"""What it costs to begin: CPU time of whole processes."""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median
from typing import Final

COMMANDS: Final = {
    "python -c pass": ["-c", "pass"],
    "import pointsman": ["-c", "import pointsman"],
    "pointsman --help": ["-m", "pointsman", "--help"],
}
GOALS_MS: Final = {"import pointsman": 150, "pointsman --help": 250}


def startups(repetitions: int) -> dict[str, float]:
    """CPU per command in ms, medians, the commands taking turns. What loading writes is written before."""
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(repetitions + 1):
        for name, arguments in COMMANDS.items():
            spent = _cpu_ms(arguments)
            if turn:
                found[name].append(spent)
    return {name: median(times) for name, times in found.items()}


def _cpu_ms(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
