"""Conversion of older node configurations to the present keys: one small function for each type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pointsman.definition.model.base import EXTENSION_PREFIX, Model
from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.problems import Problem, did_you_mean, error, note, pointer_to, warning
from pointsman.dialects.readers import field_path, list_of, member, object_of, text_of
from pointsman.values import Json, JsonObject

KEPT: Final = "x-native"
"""Key for fields of older forms of the format that this product does not have: kept and exported, never read."""


@dataclass(slots=True)
class ImportNotes:
    """Native pointer -> author's pointer, and the losses."""

    tolerant: bool
    """Unknown keys are kept with a warning, because older forms of the format allow any key."""
    origin: dict[str, str] = field(default_factory=dict[str, str])
    losses: list[Problem] = field(default_factory=list[Problem])

    def warn(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.losses.append(warning(code, pointer, message, hint=hint))

    def note(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.losses.append(note(code, pointer, message, hint=hint))


@dataclass(slots=True)
class Part:
    """One object being converted: fields move from `said` to `made`; both have pointers."""

    said: JsonObject
    made: JsonObject
    author: str
    """Pointer of `said` in the author's document."""
    native: str
    """Pointer of `made` in the native document."""
    notes: ImportNotes

    def take(self, key: str) -> Json:
        return self.said.pop(key, None)

    def put(self, key: str, value: Json, *, said_as: str) -> None:
        """Set a native key, unless the author also set it. `said_as` is a pointer without its first `/`."""
        if key in self.said or key in self.made:
            return
        self.made[key] = value
        self.notes.origin[self.native + pointer_to(key)] = f"{self.author}/{said_as}"

    def rename(self, old: str, new: str, convert: Callable[[Json], Json] = lambda value: value) -> None:
        if old in self.said:
            self.put(new, convert(self.said.pop(old)), said_as=old)

    def renames(self, **pairs: str) -> None:
        for old, new in pairs.items():
            self.rename(old, new)

    def keep_rest(self, keys: frozenset[str], *, where: str, place_of: Callable[[str], str] = lambda _: "") -> None:
        """Copy the remaining keys. In tolerant mode, keys that are not native move to `x-native`.

        `place_of`: the place where a key has an effect; empty: nowhere. A value in the wrong place is an error, because
        it would be lost.
        """
        odd: JsonObject = {}
        for key, value in self.said.items():
            if self.notes.tolerant and key not in keys and not key.startswith(EXTENSION_PREFIX):
                odd[key] = value
                pointer = self.author + pointer_to(key)
                if value not in (None, "", [], {}) and (place := place_of(key)):
                    hint = f"Move it to {place}."
                    self.notes.losses.append(
                        error(
                            "misplaced-key",
                            pointer,
                            f"{where} has the key {key!r}, which has no effect here",
                            hint=hint,
                        )
                    )
                elif not key.startswith("_"):
                    hint = did_you_mean(key, keys) or "The key is stored and exported, but has no effect."
                    self.notes.warn("ignored-key", pointer, f"{where} has the key {key!r}", hint=hint)
                else:
                    self.notes.note("ignored-key", pointer, f"{where} keeps the private key {key!r}")
            else:
                self.made[key] = value
        if odd:
            self.made[KEPT] = odd


@dataclass(slots=True)
class NodePart:
    """A node being converted: its own keys, and those of its configuration."""

    node: Part
    config: Part
    kind: str
    id: str


@cache
def config_keys(kind: str) -> frozenset[str]:
    """Return the keys that the configuration of a node type has in documents."""
    model = CONFIG_OF.get(kind)
    return frozenset() if model is None else document_keys(model)


def document_keys(model: type[Model]) -> frozenset[str]:
    """Return the keys that a model has in documents."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


def literal(value: Json) -> str:
    """Return a JSON value as an expression."""
    return json.dumps(value, ensure_ascii=False)


_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,17})?")
_INPUT_ROOT: Final = re.compile(r"\$\.(?:initialData|input)\b")
_ONE_PATH: Final = re.compile(r"\s*\{\{\s*([\w.$\[\]-]+)\s*\}\}\s*")
_HTML_TYPES: Final[Mapping[str, JsonObject]] = {
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "string": {"type": "string"},
    "text": {"type": "string"},
    "textarea": {"type": "string"},
}
_HINTS: Final = ("label", "description", "accept", "maxSizeMB", "rows", "options", "placeholder")

_AGGREGATES: Final = {"all": "list", "array": "list", "collect": "list", "majority": "vote", "object": "object"}
_STRATEGIES: Final = {"all": "merge", "any": "first", "majority": "vote"}
_TIERS: Final = {
    "short_term": "execution",
    "short-term": "execution",
    "shortTerm": "execution",
    "long-term": "long_term",
    "longTerm": "long_term",
    "persistent": "long_term",
    "chat": "session",
}
_OPERATIONS: Final = {"read": "get", "write": "set", "load": "get", "save": "set", "remove": "delete"}
_COMPARISONS: Final = {
    "equals": "{0} == {1}",
    "notEquals": "{0} != {1}",
    "greaterThan": "{0} > {1}",
    "lessThan": "{0} < {1}",
    "greaterThanOrEqual": "{0} >= {1}",
    "lessThanOrEqual": "{0} <= {1}",
    "contains": "contains({0}, {1})",
    "matches": "matches({0}, {1})",
    "in": "{0} in {1}",
    "notIn": "{0} not in {1}",
}


def as_expression(value: Json) -> Json:
    """Return a mapping's value as an expression: a text that begins with `$` or is exactly `{{path}}` is a path, else a
    literal."""
    if isinstance(value, str) and value.startswith("$"):
        return value
    if isinstance(value, str) and (match := _ONE_PATH.fullmatch(value)):
        return match[1]
    return literal(value)


def _read_start(part: NodePart) -> None:
    config = part.config
    _convert_defaults(config)
    config.rename("inputVariables", "inputs", _form)
    config.rename("inputMapping", "set", lambda value: _each(value, lambda text: _of_input(as_expression(text))))


def _of_input(expression: Json) -> Json:
    return _INPUT_ROOT.sub("input", expression) if isinstance(expression, str) else expression


def _convert_defaults(config: Part) -> None:
    """Read defaults that are scalars of another type than their field with the intended type, as forms write them."""
    kinds: dict[str, Json] = {}
    variables = list_of(config.said.get("inputVariables"))
    values: list[Json] = []
    for index, one in enumerate(variables):
        variable = object_of(one)
        kind = kinds[str(variable.get("name"))] = _HTML_TYPES.get(str(variable.get("type", "string")), {}).get("type")
        at = config.author + pointer_to("inputVariables", index)
        defaults = {key: kind for key in ("default", "defaultValue") if key in variable}
        values.append({**variable, **_converted(variable, defaults, at, config.notes)} if defaults else one)
    if variables:
        config.said["inputVariables"] = values
    if (defaults := object_of(config.said.get("defaults"))) and kinds:
        at = config.author + pointer_to("defaults")
        config.said["defaults"] = {**defaults, **_converted(defaults, kinds, at, config.notes)}


def _converted(values: JsonObject, kinds: Mapping[str, Json], at: str, notes: ImportNotes) -> JsonObject:
    """Return the values that change, with a warning each: texts that spell a number or a boolean, and scalars of a text
    field."""
    result: JsonObject = {}
    for key, kind in kinds.items():
        value, made = values.get(key), None
        if isinstance(value, str) and kind == "number" and _NUMBER.fullmatch(value.strip()):
            made = json.loads(value)
        elif isinstance(value, str) and kind == "boolean":
            made = {"true": True, "false": False}.get(value.strip().lower())
        elif isinstance(value, bool | int | float) and kind == "string":
            made = literal(value)
        if made is not None:
            result[key] = made
            message = f"the default is read as {literal(made)}"
            notes.warn("type-converted", at + pointer_to(key), message, hint="Write this value in the document.")
    return result


def _form(value: Json) -> Json:
    """Return `inputVariables` as a JSON Schema. Values that only forms need go to `x-form` of each property."""
    if not isinstance(value, list):
        return value
    properties: JsonObject = {}
    required: list[Json] = []
    for index, entry in enumerate(value):
        variable: JsonObject = {"name": entry} if isinstance(entry, str) else object_of(entry)
        name = variable.get("name")
        if not isinstance(name, str):
            name = f"input{index + 1}"
        properties[name] = _property(variable)
        if (
            variable.get("required") is True
            and variable.get("default") is None
            and variable.get("defaultValue") is None
        ):
            required.append(name)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _property(variable: JsonObject) -> JsonObject:
    kind = variable.get("type", "string")
    schema: JsonObject = dict(_HTML_TYPES.get(str(kind), {}))
    for key in ("label", "description"):
        if text := text_of(variable.get(key)):
            schema["title" if key == "label" else key] = text
    for key in ("default", "defaultValue"):
        if variable.get(key) is not None and (
            variable[key] != "" or (schema.get("type") == "string" and "format" not in schema)
        ):
            schema["default"] = variable[key]  # Forms write "" for an empty field of any type.
    options = list_of(variable.get("options"))
    if kind == "select" and options:
        schema["enum"] = [option.get("value") if isinstance(option, dict) else option for option in options]
    hints: JsonObject = {"type": kind, **{key: variable[key] for key in _HINTS if key in variable}}
    rest = {key: value for key, value in variable.items() if key not in (*_HINTS, *_HANDLED)}
    return {**schema, "x-form": {**hints, **rest}}


_HANDLED: Final = ("name", "type", "required", "default", "defaultValue")


def _each(value: Json, convert: Callable[[Json], Json]) -> Json:
    return {key: convert(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _read_end(part: NodePart) -> None:
    config = part.config
    for old in ("outputVariables", "includeFields"):
        config.rename(
            old, "output", lambda value: {name: field_path(name) for name in list_of(value) if isinstance(name, str)}
        )
    config.rename("outputMapping", "output", lambda value: _each(value, as_expression))
    config.rename("statusCode", "status")
    if part.node.notes.tolerant and "output" not in config.made and "output" not in config.said:
        config.made["output"] = "state"  # In the older format, an end without outputs returns the whole state.


def _read_agent(part: NodePart) -> None:
    part.config.renames(
        modelId="model", systemPrompt="system", userPrompt="prompt", agentId="agent", responseSchema="outputSchema"
    )


def _read_tool(part: NodePart) -> None:
    part.config.renames(toolId="tool", params="parameters", arguments="parameters")


def _read_decision(part: NodePart) -> None:
    config = part.config
    config.take("type")
    config.renames(prompt="llmPrompt", modelId="model", defaultBranch="default")
    variable = config.take("variable")
    if isinstance(variable, str):
        config.rename(
            "conditions", "cases", lambda value: [_case(variable, object_of(entry)) for entry in list_of(value)]
        )
    options = config.said.get("choices")
    if isinstance(options, list):
        config.said["choices"] = [_choice(option) for option in options]


def _case(variable: str, condition: JsonObject) -> Json:
    test = next((word for word in _COMPARISONS if word in condition), None)
    when = "false" if test is None else _COMPARISONS[test].format(variable, literal(condition[test]))
    return {"when": when, "label": condition.get("branch")}


def _choice(option: Json) -> Json:
    if not isinstance(option, dict) or ("label" in option and "value" not in option):
        return option
    label = option.get("value", option.get("id", option.get("branch")))
    about = option.get("description", option.get("label"))
    return {"label": label, **({"description": about} if about is not None else {})}


def _read_parallel(part: NodePart) -> None:
    config = part.config
    dynamic = config.said.get("dynamicBranches")
    if isinstance(dynamic, dict):
        entry = config.take("dynamicBranches")
        for key in ("items", "path", "array", "source", "over", "expression"):
            if key in object_of(entry):
                config.put("items", dynamic[key], said_as="dynamicBranches")
        for key in ("as", "itemVariable", "variable", "item"):
            if key in object_of(entry):
                config.put("as", dynamic[key], said_as="dynamicBranches")
    else:
        config.rename("dynamicBranches", "items")
    config.renames(concurrency="maxParallel", maxConcurrency="maxParallel", itemVariable="as", array="items")


def _read_join(part: NodePart) -> None:
    config = part.config
    count = config.said.get("n", config.said.get("count"))
    for old in ("waitFor", "mode"):
        config.rename(old, "wait", lambda value: _wait(value, count))
    aggregation = config.take("aggregation")
    if isinstance(aggregation, str) and aggregation in ("any", "n_of_m", "first"):
        config.put("wait", _wait(aggregation, count), said_as="aggregation")
        if aggregation != "n_of_m":
            config.put("aggregate", "first", said_as="aggregation")
    elif aggregation is not None:
        name = _AGGREGATES.get(aggregation, aggregation) if isinstance(aggregation, str) else aggregation
        config.put("aggregate", name, said_as="aggregation")
    if "wait" in config.made and config.made["wait"] == count:
        config.take("n")
        config.take("count")
    _read_strategy(part)


def _wait(value: Json, count: Json) -> Json:
    if value in ("n_of_m", "first", "any"):
        return count if value == "n_of_m" and count is not None else "any" if value != "n_of_m" else value
    return value


def _read_strategy(part: NodePart) -> None:
    """Convert `strategy` over named fields, which needs no branches, to an expression over the state."""
    config = part.config
    strategy = config.said.get("strategy", "all")
    names = [name for name in list_of(config.said.get("inputVariables")) if isinstance(name, str)]
    if names and strategy in ("all", "any"):
        config.take("strategy")
        config.take("inputVariables")
        pairs = ", ".join(f"{literal(name)}: {field_path(name)}" for name in names)
        made = f"{{{pairs}}}" if strategy == "all" else " ?? ".join(field_path(name) for name in names)
        config.put("aggregate", made, said_as="inputVariables")
    elif not names:
        config.rename("strategy", "aggregate", lambda value: _STRATEGIES.get(str(value), value))


def _read_human(part: NodePart) -> None:
    config = part.config
    config.renames(inputSchema="form", showData="show", prompt="message", editableFields="editable")
    options = config.said.get("options")
    if isinstance(options, list):
        config.said["options"] = [{"value": option} if isinstance(option, str) else option for option in options]
    if part.node.notes.tolerant:
        answer = f"humanResponse_{part.id.replace('-', '_')}"
        gate = member("nodes", part.id)
        add_output(part, answer, f"{{response: {gate}.action, data: {gate}.data}}")


def add_output(part: NodePart, path: str, expression: str) -> None:
    """Add an output to the node, unless it has one with this path."""
    outputs = part.node.made.setdefault("outputs", {})
    if isinstance(outputs, dict):
        outputs.setdefault(path, expression)


def _read_transform(part: NodePart) -> None:
    config = part.config
    config.rename("mappings", "set", lambda value: _each(value, as_expression))
    for old in ("expression", "jsonPath"):
        config.rename(old, "jsonpath")


def _read_memory(part: NodePart) -> None:
    config = part.config
    for key, words in (("scope", _TIERS), ("operation", _OPERATIONS)):
        value = config.said.get(key)
        if isinstance(value, str):
            config.said[key] = words.get(value, value)
    if config.said.get("scope") == "workflow" and part.node.notes.tolerant:
        config.said["scope"] = "execution"  # The older word for an execution.
    if "section" in config.said:
        config.said.setdefault("scope", "long_term")
        config.said.setdefault("operation", "get")
    config.renames(profileId="namespace", tier="scope")
    config.rename("profileIdPath", "namespace", lambda value: f"{{{{{value}}}}}")
    if "value" in config.said and part.node.notes.tolerant:
        config.said["value"] = as_expression(config.said["value"])


def _read_workflow(part: NodePart) -> None:
    config = part.config
    config.rename("workflowId", "workflow")
    config.rename("inputMapping", "input", lambda value: _each(value, as_expression))


def _read_code(part: NodePart) -> None:
    """Convert a Python node. A node in another language keeps its code under a type that only plug-ins can run."""
    config = part.config
    language = config.said.get("language", "javascript" if "code" in config.said else "python")
    if isinstance(language, str) and language.lower() not in ("python", "py"):
        part.node.made["type"] = f"code-{language.lower()}"
        part.kind = ""
        return
    if "language" in config.said:
        config.said["language"] = "python"
    config.renames(code="source", script="source")


def _read_template_render(part: NodePart) -> None:
    """Convert keys that end in `Var`, `Variable` or `Path` to names bound in the template."""
    config = part.config
    bind = {}
    for key in list(config.said):
        value = config.said[key]
        match = re.fullmatch(r"(\w+?)(Var|Variable|Path)", key)
        if match and isinstance(value, str):
            config.take(key)
            bind[match[1]] = value if match[2] == "Path" else field_path(value)
    if bind:
        config.put("bind", {**bind}, said_as="template")


def _read_verifier(part: NodePart) -> None:
    config = part.config
    config.rename("inputVariable", "input", _field)
    config.renames(inputPath="input", modelId="model")


def _field(value: Json) -> Json:
    return field_path(value) if isinstance(value, str) else value


def _read_structured_record(part: NodePart) -> None:
    config = part.config
    config.renames(inputPath="input", sourcePath="source", iterationIndexPath="index")
    config.rename("recordsVar", "records")
    config.rename("evidenceVar", "records")
    if part.node.notes.tolerant:
        for key, default in (("input", "_extractionOutput"), ("source", "_loopItem"), ("records", "_evidence")):
            if key not in config.made and key not in config.said:
                config.made[key] = default
        if "schema" not in config.said:
            config.made["schema"] = {}
            schema_name = config.said.get("schemaName")
            message = f"the schema {schema_name!r} is not part of the document, so records are not checked"
            part.node.notes.warn("schema-unknown", config.author, message, hint="Write the JSON Schema under 'schema'.")


def _read_planner(part: NodePart) -> None:
    part.config.rename("modelId", "model")


READ_CONFIG: Final[Mapping[str, Callable[[NodePart], None]]] = {
    "start": _read_start,
    "end": _read_end,
    "agent": _read_agent,
    "tool": _read_tool,
    "decision": _read_decision,
    "parallel": _read_parallel,
    "join": _read_join,
    "human": _read_human,
    "transform": _read_transform,
    "memory": _read_memory,
    "workflow": _read_workflow,
    "code": _read_code,
    "template-render": _read_template_render,
    "verifier": _read_verifier,
    "structured-record": _read_structured_record,
    "planner": _read_planner,
}
