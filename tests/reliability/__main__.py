"""python -m tests.reliability [--tier pr|long] [--for TIME] [--only ROW]… [--seed N] [--size N] [--write]"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Final

from tests.reliability.findings import SEED, Finding, NotHere, Row, Tier
from tests.reliability.report import PAGE, Result, complaints, joined, line_of, page
from tests.reliability.scorecard import ROWS

COMMANDS: Final[dict[Tier, str]] = {"pr": "make reliability", "long": "python -m tests.reliability --tier long --write"}
SECONDS_IN: Final = {"s": 1, "m": 60, "h": 3600}


def result_of(row: Row, size: int, seed: int) -> Result:
    """Run one row. An exception counts as no result, and does not end a long run."""
    began = time.perf_counter()
    missing, finding = "", None
    try:
        finding = row.examine(size, seed)
    except NotHere as why:
        missing = str(why)
    except Exception as why:
        told = traceback.format_exception(why)[-2:]
        finding = Finding("the experiment broke", ("".join(told).strip(),))
    return Result(row, size, time.perf_counter() - began, finding, missing, seed=seed)


def once(rows: Sequence[Row], tier: Tier, seed: int, size: int | None) -> Iterator[Result]:
    """Run every row once."""
    for row in rows:
        yield result_of(row, size or row.sizes[tier], seed)


def soaked(rows: Sequence[Row], seconds: float, seed: int, size: int | None) -> Iterator[Result]:
    """Run rows in slices until the time is over; the row with the least time so far is next, from the end of the table.
    Each slice has another seed, unless all runs of a row are alike. A row without a slice is reported as such.
    """
    until = time.monotonic() + seconds
    spent = {row.name: 0.0 for row in rows}
    turns = dict.fromkeys(spent, 0)
    waiting = [*reversed(rows)]
    while waiting and time.monotonic() < until:
        row = min(waiting, key=lambda row: spent[row.name])
        result = result_of(row, size or row.test_size or row.sizes["pr"], seed + turns[row.name])
        spent[row.name] += result.seconds
        turns[row.name] += 1
        if result.finding is None or row.sizes["pr"] == row.sizes["long"]:
            waiting.remove(row)
        yield result
    yield from (Result(row, 0, 0.0, missing="the time was over") for row in rows if not turns[row.name])


def duration(text: str) -> float:
    """Return the seconds of `90s`, `5m` or `8h`."""
    found = re.fullmatch(r"(\d+)([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 90s, 5m, 8h")
    return int(found[1]) * SECONDS_IN[found[2]]


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description="The reliability scorecard.")
    parser.add_argument("--tier", choices=("pr", "long"), default="pr")
    parser.add_argument(
        "--for", dest="seconds", type=duration, metavar="TIME", help="in turns for so long: 90s, 5m, 8h"
    )
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS], help="one row; may be repeated")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--size", type=int, help="instead of the size of the tier")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    return parser.parse_args()


def main() -> int:
    how = asked()
    rows = [row for row in ROWS if not how.only or row.name in how.only]
    turns = once(rows, how.tier, how.seed, how.size)
    if how.seconds is not None:
        turns = soaked(rows, how.seconds, how.seed, how.size)
    results: dict[str, Result] = {}
    for result in turns:
        print(line_of(result), flush=True)  # noqa: T201 - it is a command
        for complaint in complaints(result):
            print(f"  {complaint}", flush=True)  # noqa: T201 - as above
        results[result.row.name] = joined(results.get(result.row.name), result)
    if how.seconds is not None:
        print("in all:")  # noqa: T201 - as above
        for result in results.values():
            print(line_of(result))  # noqa: T201 - as above
    if how.write:
        command = "make soak" if how.seconds is not None else COMMANDS[how.tier]
        PAGE.write_text(page([*results.values()], command=command, seed=how.seed), encoding="utf-8")
    return 0 if all(result.finding is None or result.finding.holds for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
