"""The small workflows that the server tests run."""

from __future__ import annotations

CHAIN = """\
pointsman: 1
id: chain
input: {type: object}
output: {said: b}
nodes:
  - {id: first, type: agent, config: {prompt: one}, outputs: {a: result}}
  - {id: second, type: agent, config: {prompt: two}, outputs: {b: result}}
edges: [{source: first, target: second}]
"""

LETTER = """\
pointsman: 1
id: letter
entry: write
input: {type: object, required: [goal], properties: {goal: {type: string}}}
output: {letter: text}
nodes:
  - {id: write, type: agent, config: {prompt: "Write about {goal}"}, outputs: {text: result}}
  - {id: review, type: human, config: {message: "Send it?", options: [{value: approve}, {value: again}]}}
  - {id: send, type: end}
edges:
  - {source: write, target: review}
  - {source: review, target: send, condition: {type: label, label: approve}}
  - {source: review, target: write, condition: {type: label, label: again}}
"""

SHOWN = """\
pointsman: 1
id: shown
input: {type: object, required: [letter], properties: {letter: {type: string}}}
config: {humanInLoop: real_time}
output: {letter: letter}
nodes:
  - {id: review, type: human, config: {message: "Send {letter}?", actions: [approve, edit], editable: [letter]}}
  - {id: send, type: end}
edges: [{source: review, target: send, condition: {type: always}}]
"""

WAITS = """\
pointsman: 1
id: waits
input: {type: object}
output: {said: nodes.knock.data}
nodes:
  - {id: knock, type: wait, config: {event: knock}}
"""

TALK = """\
pointsman: 1
id: talk
config: {conversational: true}
nodes:
  - {id: speak, type: agent, config: {prompt: "You are brief."}}
"""


def secret_of(*groups: str) -> str:
    """Return a workflow for some groups only."""
    return CHAIN.replace("id: chain", f"id: secret\nallowedGroups: [{', '.join(groups)}]")
