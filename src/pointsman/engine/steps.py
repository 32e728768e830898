"""What identifies a piece of running work: where it is in the graph, never when it came.

execution ─┬─ step write            Step("write")
           ├─ step write, again     Step("write", visit=2)
           └─ parallel ─┬─ branch 0 ─ Step("draft", scope=(Branch("parallel", 1, 0),))
                        └─ branch 1 ─ Step("draft", scope=(Branch("parallel", 1, 1),))
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pointsman.errors import CallerError


class Branch(NamedTuple):
    """One branch of one opening of a parallel. The parallel's id keeps two parallels of one scope apart."""

    parallel: str
    visit: int
    branch: int


Scope: TypeAlias = tuple[Branch, ...]
"""The open branches around a step, outermost first. `()` is the execution itself."""


class Split(NamedTuple):
    """One of several edges that a step left by at once."""

    node: str
    visit: int
    edge: int


Thread: TypeAlias = tuple[Split, ...]
"""The splits behind a token that have not been merged yet. It orders what runs at once inside one scope."""


class Step(NamedTuple):
    """One visit of control to one node. Made of where it is, never of when it came: replays must agree."""

    node: str
    scope: Scope = ()
    visit: int = 1
    thread: Thread = ()
    """Only behind a node with `trigger: each`, where several tokens pass one node separately."""

    def __str__(self) -> str:
        around = "".join(f"{b.parallel}[{b.visit}.{b.branch}]/" for b in self.scope)
        behind = "".join(f"~{s.node}.{s.visit}.{s.edge}" for s in self.thread)
        return f"{around}{self.node}{behind}" + (f"#{self.visit}" if self.visit > 1 else "")


class NoSuchStep(CallerError):
    """A step was named that this execution does not have."""

    code = "no-such-step"
