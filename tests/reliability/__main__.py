"""python -m tests.reliability [--tier pr|long] [--only ROW]… [--seed N] [--size N] [--write]"""

from __future__ import annotations

import argparse
import sys
import time

from tests.reliability.findings import SEED, NotHere, Row, Tier
from tests.reliability.report import PAGE, Result, complaints, line_of, page
from tests.reliability.scorecard import OPEN, ROWS


def result_of(row: Row, size: int, seed: int) -> Result:
    """Run one row."""
    began = time.perf_counter()
    try:
        finding = row.examine(size, seed)
    except NotHere as why:
        return Result(row, size, time.perf_counter() - began, missing=str(why))
    return Result(row, size, time.perf_counter() - began, finding)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description="The reliability scorecard.")
    parser.add_argument("--tier", choices=("pr", "long"), default="pr")
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS], help="one row; may be repeated")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--size", type=int, help="instead of the size of the tier")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    asked = parser.parse_args()
    tier: Tier = asked.tier
    results: list[Result] = []
    for row in ROWS:
        if asked.only and row.name not in asked.only:
            continue
        results.append(result_of(row, asked.size or row.sizes[tier], asked.seed))
        print(line_of(results[-1]), flush=True)  # noqa: T201 - it is a command
        for complaint in complaints(results[-1]):
            print(f"  {complaint}", flush=True)  # noqa: T201 - as above
    for one in OPEN:
        print(f"open: {one.experiment} ({one.needs})")  # noqa: T201 - as above
    if asked.write:
        PAGE.write_text(page(results, OPEN, tier=tier, seed=asked.seed), encoding="utf-8")
    return 0 if all(result.finding is None or result.finding.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
