"""Agents that hand over to others by name, without an edge to each of them."""

from __future__ import annotations

import pytest

from pointsman.testing.clock import run_virtually
from tests.scenarios import installation, play, written

DESK = """
pointsman: 1
id: desk
entry: triage
config: {limits: {steps: 20}}
nodes:
  - {id: triage, type: agent, config: {prompt: Who can help?, handoffs: [billing, expert]}}
  - {id: billing, type: agent, config: {prompt: Help., handoffs: [triage]}}
  - {id: technics, type: agent, config: {agent: expert, prompt: Help.}}
  - {id: end, type: end}
agents: {expert: {system: You know machines.}}
edges: [{source: triage, target: end}, {source: billing, target: end}, {source: technics, target: end}]
"""

AROUND = """
  {node: triage, visit: 1, next: billing}, {node: billing, next: triage}, {node: triage, next: technics}, {text: Fixed.}
"""


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ("{node: triage, text: I can.}", ["triage", "end"]),
        ("{node: triage, next: billing}, {text: Paid.}", ["triage", "billing", "end"]),
        ("{node: triage, next: technics}, {text: Fixed.}", ["triage", "technics", "end"]),
        (AROUND, ["triage", "billing", "triage", "technics", "end"]),
    ],
)
def test_an_agent_goes_where_it_hands_over_to_else_by_its_edges(rules: str, path: list[str]) -> None:
    played = play(DESK, script=f"rules: [{rules}]")
    assert (played.status, played.path) == ("completed", path)


def test_hand_offs_to_nobody_and_of_nobody_are_told() -> None:
    document = DESK.replace("[billing, expert]", "[biling]").replace("machines.}", "machines., handoffs: [triage]}")

    async def run() -> list[tuple[str, str]]:
        async with installation() as app:
            found = (await app.check(written(document))).problems
            return [(p.code, p.pointer) for p in found if "hand" in p.pointer]

    assert run_virtually(run()) == [
        ("unknown-node", "/nodes/0/config/handoffs/0"),
        ("setting-without-effect", "/agents/expert/handoffs"),
    ]
