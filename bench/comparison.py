"""`python -m bench.comparison`: Pointsman beside other products, each through its public API; writes PEERS.md.

Every peer has a module in `bench/peers`, which runs the same shapes with the same node functions, and an environment of
its own under `bench/.peers` (`--install` builds them from the pinned versions in `bench/peers/*.txt`). One run measures
all: the cells of all products take turns, each in a fresh process.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, cast

from bench.meter import Sample
from bench.plots import bars
from bench.report import environment
from bench.shapes import read_shapes
from bench.turns import OURS, ROOT, Cell, Measurements, answer_of, in_turns, model_servers, spread, table

PAGE: Final = ROOT / "bench" / "PEERS.md"
PLOTS: Final = ROOT / "bench" / "plots"
MODULES: Final = ROOT / "bench" / "peers"
ENVIRONMENTS: Final = ROOT / "bench" / ".peers"
COMPARED: Final[Mapping[str, Mapping[str, tuple[int, ...]]]] = {
    "memory": {
        "chain": (10, 100, 1000),
        "chain-sync": (100,),
        "cycle": (1000,),
        "fan-out": (100, 1000),
        "sub-graphs": (100,),
        "at-once": (1000,),
        "agent": (10, 50),
    },
    "sqlite": {"chain": (100,), "cycle": (1000,), "at-once": (1000,), "wide-state": (300,), "agent": (10, 50)},
}


class Peer(NamedTuple):
    """A product, or a floor."""

    name: str
    module: str
    """In `bench.peers`."""
    package: str = ""
    """Of the version that the report shows; empty: it runs in this environment."""

    @property
    def python(self) -> Path:
        return ENVIRONMENTS / self.module / "bin" / "python" if self.package else Path(sys.executable)

    @property
    def versions(self) -> str:
        return (MODULES / f"{self.module}.txt").read_text(encoding="utf-8") if self.package else ""

    @property
    def version(self) -> str:
        pinned = dict(line.split("==") for line in self.versions.split())
        return pinned.get(self.package, "")

    @property
    def installed(self) -> bool:
        built = ENVIRONMENTS / self.module / "versions"
        return not self.package or (built.exists() and built.read_text(encoding="utf-8") == self.versions)

    def described(self) -> tuple[str, dict[str, str]]:
        """The settings it runs with, and the reasons why it does not run some shapes or stores: from its module."""
        module = ast.parse((MODULES / f"{self.module}.py").read_text(encoding="utf-8"))
        for statement in module.body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id="CANNOT")], value=value)
                    | ast.AnnAssign(target=ast.Name(id="CANNOT"), value=ast.expr() as value)
                ):
                    return ast.get_docstring(module) or "", cast("dict[str, str]", ast.literal_eval(value))
                case _:
                    pass
        raise AssertionError(f"{self.module} has no CANNOT")


PEERS: Final = (
    Peer("Python alone", "floor"),
    Peer("openai SDK", "openai_sdk"),
    Peer("LangGraph", "langgraph", "langgraph"),
    Peer("pydantic-ai, -graph", "pydantic_ai", "pydantic-ai-slim"),
    Peer("Burr", "burr", "apache-burr"),
    Peer("LlamaIndex", "llama_index", "llama-index-workflows"),
    Peer("Agent Framework", "agent_framework", "agent-framework-core"),
)


def cannot(peer: Peer, shape: str, store: str, size: int) -> str:
    """Return why a peer does not run a shape of this size; empty: it does."""
    _, reasons = peer.described()
    kind = "agents" if shape == "agent" else "graphs"
    return next((reasons[key] for key in (shape, f"{shape} {size}", store, kind) if key in reasons), "")


def cells_of(peers: Sequence[Peer], only: Sequence[str]) -> list[Cell]:
    found: list[Cell] = []
    for store, shapes in COMPARED.items():
        for shape, sizes in shapes.items():
            if only and shape not in only:
                continue
            for size in sizes:
                able = [peer.name for peer in peers if not cannot(peer, shape, store, size)]
                found += [Cell(name, shape, store, size) for name in (OURS, *able)]
    return found


def measure(cell: Cell, models: Mapping[int, str]) -> Sample:
    address = [models[cell.size]] if cell.shape == "agent" else []
    peer = next((one for one in PEERS if one.name == cell.contender), None)
    module, python = ("public", Path(sys.executable)) if peer is None else (f"peers.{peer.module}", peer.python)
    return answer_of([str(python), "-m", f"bench.{module}", cell.shape, str(cell.size), cell.store, *address], Sample)


def install() -> None:
    """Build the environments that are missing, or whose versions have changed."""
    for peer in PEERS:
        if peer.installed:
            continue
        folder = ENVIRONMENTS / peer.module
        shutil.rmtree(folder, ignore_errors=True)
        print(f"Setting up {folder.relative_to(ROOT)}", file=sys.stderr)
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        pinned = ["--no-deps", "--requirement", str(MODULES / f"{peer.module}.txt")]
        subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(peer.python), *pinned], check=True)
        (folder / "versions").write_text(peer.versions, encoding="utf-8")


STORES: Final = {
    "memory": """## In memory""",
    "sqlite": """## In SQLite, durable at each step

The state is on the disk before the next step starts. A bare commit took {cpu} µs of CPU and {wall} µs of wall
time in the same processes.""",
}
FIGURES: Final[Mapping[str, Callable[[Sample], float]]] = {"CPU": lambda one: one.cpu, "wall": lambda one: one.wall}


def page(found: Measurements, peers: Sequence[Peer], repetitions: int, seconds: float) -> str:
    parts = [
        f"""# Pointsman beside other products

Each product runs the same shapes through its public API with the same node functions, in an environment of its own; all
cells took turns in one run, each in a fresh process. µs per call of a node function (agents: per round of a model call
and a tool call) of the second run in the process, so graphs are compiled and code is warm: the median and, in brackets,
the least and the greatest. Below: the multiple of Pointsman's figure; above 1 the other product takes longer. CPU is
that of all threads of the process, without the model server. `make bench-peers` writes this page.

{environment(repetitions, seconds)}"""
    ]
    for store, head in STORES.items():
        cells = [cell for cell in found if cell.store == store]
        if not cells:
            continue
        bare = [one for cell in cells for one in found[cell]]
        cpu, wall = spread([one.bare_cpu for one in bare]), spread([one.bare_wall for one in bare])
        parts.append(head.format(cpu=cpu, wall=wall))
        parts += [f"### {name} time, µs\n\n{_table(found, store, peers, of)}" for name, of in FIGURES.items()]
        parts.append("\n".join(f"![{plot.stem}](plots/{plot.name})" for plot in plots_of(store)))
    memory = _table({cell: runs for cell, runs in found.items() if cell.shape == "at-once"}, "memory", peers, _peak)
    parts += [f"## Peak memory of many executions at once, MB\n\n{memory}", _settings(peers)]
    return "\n\n".join(parts) + "\n"


def _peak(one: Sample) -> float:
    return one.peak_mb


def _table(found: Measurements, store: str, peers: Sequence[Peer], of: Callable[[Sample], float]) -> str:
    rows: dict[tuple[str, int], list[str]] = {}
    for shape, size in dict.fromkeys((cell.shape, cell.size) for cell in found if cell.store == store):
        ours = median(of(one) for one in found[Cell(OURS, shape, store, size)])
        row = rows.setdefault((shape, size), [f"{shape} {size:,}"])
        for name in (OURS, *(peer.name for peer in peers)):
            runs = found.get(Cell(name, shape, store, size))
            if runs is None:
                row.append("–")
                continue
            middle = median(of(one) for one in runs)
            figure, ratio = spread([of(one) for one in runs], 0 if middle >= 10 else 1), middle / ours
            row.append(figure if name == OURS else f"{figure}<br>{ratio:.2g} ×")
    return table(["shape", OURS, *(peer.name for peer in peers)], list(rows.values()))


def _settings(peers: Sequence[Peer]) -> str:
    titles = {name: shape.title for name, shape in read_shapes().items()}
    shapes = dict.fromkeys(shape for compared in COMPARED.values() for shape in compared)
    parts = ["## Shapes", "\n".join(f"- **{shape}**: {titles[shape]}" for shape in shapes), "## Versions and settings"]
    parts.append(f"**{OURS}**: default settings. The definition is checked and compiled by the product at each start.")
    for peer in peers:
        text, reasons = peer.described()
        version = f" {peer.version}" if peer.version else ""
        cannot = "".join(f"\n- Not compared, {key}: {why}." for key, why in reasons.items())
        parts.append(f"**{peer.name}**{version}: {text}" + (f"\n{cannot}" if cannot else ""))
    return "\n\n".join(parts)


def plots_of(store: str) -> list[Path]:
    return [PLOTS / f"peers-{store}-{kind}.svg" for kind in ("graphs", "agents")]


def draw(found: Measurements, peers: Sequence[Peer]) -> None:
    PLOTS.mkdir(exist_ok=True)
    names = (OURS, *(peer.name for peer in peers))
    for store in COMPARED:
        for path, is_agent in zip(plots_of(store), (False, True), strict=True):
            cells = [cell for cell in found if cell.store == store and (cell.shape == "agent") is is_agent]
            groups: dict[str, dict[str, float]] = {}
            for name in names:  # In this order, so that a colour means the same product in every group.
                for cell in cells:
                    if cell.contender == name:
                        group = groups.setdefault(f"{cell.shape} {cell.size:,}", {})
                        group[name] = median(one.cpu for one in found[cell])
            unit = "µs per round" if is_agent else "µs per call of a node function"
            where = "in SQLite, durable at each step" if store == "sqlite" else "in memory"
            title = f"CPU of {'agents' if is_agent else 'graphs'} {where}"
            path.write_text(bars(title, unit, groups), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.comparison", description=__doc__)
    parser.add_argument("shapes", nargs="*", help="only these; prints, writes nothing")
    parser.add_argument("--install", action="store_true", help="build the environments of the peers first")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="measure each N times (3)")
    options = parser.parse_args()
    if options.install:
        install()
    peers = [peer for peer in PEERS if peer.installed]
    absent = [peer.name for peer in PEERS if peer not in peers]
    if absent:
        print(f"Not installed (make bench-peers): {', '.join(absent)}", file=sys.stderr)
    began, cells = time.perf_counter(), cells_of(peers, options.shapes)
    with model_servers(cells) as models:
        found = in_turns(cells, options.repeat, lambda cell: measure(cell, models))
    report = page(found, peers, options.repeat, time.perf_counter() - began)
    if options.shapes or absent:
        print(report)
    else:
        draw(found, peers)
        PAGE.write_text(report, encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} is written.")


if __name__ == "__main__":
    main()
