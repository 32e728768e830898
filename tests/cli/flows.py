"""The small workflows that the tests of the command line run."""

from __future__ import annotations

from pathlib import Path

APPROVAL = """\
pointsman: 1
id: letter
entry: write
input: {type: object, required: [goal], properties: {goal: {type: string}, tone: {}}}
output: {letter: text, tone: tone}
nodes:
  - {id: write, type: agent, config: {prompt: "Write about {goal}"}, outputs: {text: result}}
  - {id: review, type: human, config: {message: "Send it?", options: [{value: approve}, {value: again}]}}
  - {id: send, type: end}
edges:
  - {source: write, target: review}
  - {source: review, target: send, condition: {type: label, label: approve}}
  - {source: review, target: write, condition: {type: label, label: again}}
"""

CHAIN = """\
pointsman: 1
id: chain
input: {type: object}
nodes:
  - {id: first, type: agent, config: {prompt: one}, outputs: {a: result}}
  - {id: second, type: agent, config: {prompt: two}, outputs: {b: result}}
  - {id: third, type: agent, config: {prompt: three}, outputs: {c: result}}
edges:
  - {source: first, target: second}
  - {source: second, target: third}
"""

WAITS = """\
pointsman: 1
id: waits
input: {type: object}
output: {said: nodes.knock.data}
nodes:
  - {id: knock, type: wait, config: {event: {name: door}}}
  - {id: open, type: end}
edges:
  - {source: knock, target: open}
"""

ROUNDS = """\
pointsman: 1
id: rounds
entry: again
config: {limits: {steps: 5}}
input: {type: object}
nodes:
  - {id: again, type: loop, config: {maxIterations: 10}}
  - {id: count, type: transform, config: {set: {n: "(n ?? 0) + 1"}}}
edges:
  - {source: again, target: count, mark: body}
  - {source: count, target: again}
"""

FANS = """\
pointsman: 1
id: fans
input: {type: object}
output: {found: found}
nodes:
  - {id: split, type: parallel, config: {items: "[1, 2, 3]", as: n}}
  - {id: ask, type: agent, config: {prompt: "What of {n}?"}, outputs: {"answers.current_fanout_item": result}}
  - {id: gather, type: join, outputs: {found: result}}
edges:
  - {source: split, target: ask}
  - {source: ask, target: gather}
"""

BROKEN = """\
pointsman: 1
id: broken
nodes:
  - {id: start, type: agent, config: {prompt: Hello}}
edges:
  - {source: start, target: nowhere}
"""


def written(name: str, text: str) -> str:
    """Write a file into the working directory and return its name."""
    Path(name).write_text(text, encoding="utf-8")
    return name
