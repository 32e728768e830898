"""Guide to writing workflows for models, short enough for every prompt."""

from __future__ import annotations

from typing import Final

GUIDE: Final = """\
A workflow is a JSON object (or YAML): {"pointsman": 1, "id", "name", "input", "state", "nodes": [...], "edges": [...]}.

`input` is the JSON Schema of what callers give; its fields are read by their names. Nodes do work, edges say what
comes next. Execution begins at the `start` node, else at the node no edge leads to, else at `entry`.

A node is {"id", "type", "inputs"?, "outputs"?, "config"}. `outputs` maps a name in the state to an expression over
`result`: {"draft": "result"} lets later nodes read `draft`. The latest result of a node is also `nodes.<id>`.

Types and what their `config` has:
- start, end: {}
- agent: {"prompt": "Write about {topic}.", "system"?, "tools"?: [names], "outputSchema"?: JSON Schema}. In prompts
  {name} puts in a value. With outputSchema `result` is JSON; without it `result` is the text.
- tool: {"tool": name, "parameters": {...}}; texts in parameters are templates too.
- transform: {"operations": [{"set": "path", "value": ...}, {"evaluate": "expression", "to": "path"}]}
- decision: {"branches"?...}; simplest is a node left by edges with conditions.
- human: {"message": "Good? {draft}", "options": [{"value": "approve"}, {"value": "redo"}]}; edges listen by label.
- parallel: its plain edges are branches; each ends at one join: {"type": "join"}. With {"items": "expression",
  "as": "x"} the one branch runs for every item.
- loop: {"while": "expression", "maxIterations": 5}: an edge with "mark": "body" leads into its rounds, whose last
  node leads back to the loop; an edge with "mark": "exit" leads on.
- workflow: {"workflow": id} runs another saved workflow. wait: {"duration": "1h"}. http, code, memory: see the schema.

An edge is {"source", "target", "condition"?}. `target` may be "END". Conditions: {"type": "expression", "expression":
"score > 3"}, {"type": "label", "label": "approve"} (what a human chose), {"type": "default"} (when no other was),
{"type": "error"} (the node failed).

Rules: every id once; every edge leads between nodes that exist; every value that is read is written before on every
way; cycles need a way out; name only tools that are in the catalogue.

Example:
{"pointsman": 1, "id": "press-note", "name": "Press note",
 "input": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
 "nodes": [
  {"id": "draft", "type": "agent", "config": {"prompt": "Write a press note about {topic}."},
   "outputs": {"note": "result"}},
  {"id": "review", "type": "human", "config": {"message": "Send it? {note}",
   "options": [{"value": "approve"}, {"value": "redo"}]}},
  {"id": "done", "type": "end", "config": {}}],
 "edges": [
  {"source": "draft", "target": "review"},
  {"source": "review", "target": "done", "condition": {"type": "label", "label": "approve"}},
  {"source": "review", "target": "draft", "condition": {"type": "label", "label": "redo"}}],
 "entry": "draft", "output": {"note": "note"}}
"""
