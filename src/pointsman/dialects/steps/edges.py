"""Edges of the steps dialect: the first in document order whose condition holds is taken; at checkpoints, by action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pointsman.dialects.foreign_fields import ForeignReader, Record, key_of, list_of, object_of
from pointsman.dialects.steps.keywords import DEFAULT_ACTIONS, action_of
from pointsman.values import END, Json, JsonObject


class StepsEdgeReader:
    def __init__(self, nodes: Mapping[str, Record], edges: Sequence[Record], reading: ForeignReader) -> None:
        self.edges = edges
        self.reading = reading
        self.checkpoints: dict[str, list[Json]] = {
            key: actions_of(record) for key, record in nodes.items() if is_checkpoint(record)
        }
        self.plain = self._plain()
        self.made: list[Json] = []

    def read(self) -> list[Json]:
        always: set[str] = set()
        for record in self.edges:
            source = key_of(record.value.get(record.said("from")))
            edge = self._edge(record, source)
            plain = object_of(edge.get("condition")).get("type", "always") == "always"
            if source in always and (plain or source not in self.checkpoints):
                self._warn_never(record)
            if plain:
                always.add(source)
        leaving = {key_of(object_of(edge).get("source")) for edge in self.made}
        for checkpoint in self.checkpoints:
            if checkpoint in leaving and checkpoint not in always:
                self._completes(checkpoint)
        return self.made

    def _edge(self, record: Record, source: str) -> JsonObject:
        at = f"/edges/{len(self.made)}"
        self.reading.origin[at] = record.pointer
        edge: JsonObject = {}
        for native, word in {"id": "id", "source": "from", "target": "to"}.items():
            self.reading.move(edge, at, native, record, word)
        label, condition = record.take("label"), record.take("condition")
        actions = self.checkpoints.get(source)
        if actions is not None and self._gate(edge, at, record, actions, label, condition):
            label = None
        elif condition not in (None, "", True):
            text: JsonObject = {"type": "expression", "expression": condition}
            self.reading.put(edge, at, "condition", text, record.at("condition"))
            self.reading.origin[f"{at}/condition/expression"] = record.at("condition")
        elif actions is not None and label is not None:
            edge["condition"] = {"type": "always"}
        if label is not None:
            self.reading.put(edge, at, "label", label, record.at("label"))
        self.reading.keep(edge, at, record)
        self.made.append(edge)
        return edge

    def _gate(
        self, edge: JsonObject, at: str, record: Record, actions: list[Json], label: Json, condition: Json
    ) -> bool:
        """Make the edge of a checkpoint conditional on one action, and return whether it is. If the only edge is drawn
        for `approve`, it also applies to edit."""
        action = action_of(label, condition, actions)
        bare = condition in (None, "")
        if action is None or (bare and action == "approve" and not self._has_plain(record)):
            return False
        said = "label" if bare else "condition"
        self.reading.put(edge, at, "condition", {"type": "label", "label": action}, record.at(said))
        if label != action or not bare:
            record.taken.difference_update(("label", record.said("condition")))
        return True

    def _has_plain(self, record: Record) -> bool:
        """Return whether the same checkpoint has another edge without condition and action."""
        source = key_of(record.value.get(record.said("from")))
        return any(other is not record for other in self.plain.get(source, ()))

    def _plain(self) -> dict[str, list[Record]]:
        """Return checkpoint -> its edges without condition and action, or for approval only."""
        found: dict[str, list[Record]] = {}
        for edge in self.edges:
            source = key_of(edge.value.get(edge.said("from")))
            bare = edge.value.get(edge.said("condition")) in (None, "")
            if source in self.checkpoints and bare:
                action = action_of(edge.value.get("label"), None, self.checkpoints[source])
                if action in (None, "approve"):
                    found.setdefault(source, []).append(edge)
        return found

    def _warn_never(self, record: Record) -> None:
        message = "is never taken: an edge before it has no condition, and the first that holds wins"
        self.reading.warning("edge-never-taken", record.pointer, message, "Move it up, or remove it.")

    def _completes(self, checkpoint: str) -> None:
        """Add an edge to the end: an action other than reject completes the workflow if no other edge applies."""
        implied: JsonObject = {"implied": True}
        way: JsonObject = {"source": checkpoint, "target": END, "condition": {"type": "default"}}
        self.made.append({**way, "x-steps": implied})


def is_checkpoint(record: Record) -> bool:
    kind = record.value.get(record.said("type"))
    return kind == "checkpoint" or (kind is None and record.has("checkpoint"))


def actions_of(record: Record) -> list[Json]:
    said = object_of(record.value.get(record.said("checkpoint"))).get("allowed_actions")
    return list_of(said) or [*DEFAULT_ACTIONS]
