"""Import of OpenAPI 3.0 and 3.1 documents as HTTP tools: one tool per operation, its parameters and body as arguments.

    GET /pets/{id}?limit=   operationId: showPet   ─▶   show_pet({id, limit})

The import makes no calls: it follows references inside the document only, and circular references do not hang it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final, cast
from urllib.parse import urljoin

from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject

BYTES_MAX: Final = 10_000_000
OPERATIONS_MAX: Final = 1000
REFERENCES_MAX: Final = 20
"""Maximum number of references to follow in a row."""
METHODS: Final = ("get", "put", "post", "delete", "head", "patch")
BODY: Final = "body"

_WORD: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ABSOLUTE: Final = re.compile(r"https?://", re.IGNORECASE)


class OpenApiUnreadable(CallerError):
    """Raised for a document that is not OpenAPI 3.0 or 3.1, or cannot be converted to tools."""

    code: ClassVar[str] = "openapi-unreadable"


@dataclass(slots=True)
class OpenApiImport:
    """Descriptions of tools by name, and messages about what could not be imported."""

    tools: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    losses: list[str] = field(default_factory=list[str])


def read_openapi(document: Json, *, source: str = "", server: str = "", prefix: str = "") -> OpenApiImport:
    """Return the tools of a document. `source`: the address of the document; `server` overrides the servers it names.

    Raises `OpenApiUnreadable`.
    """
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith(("3.0", "3.1")):
        raise OpenApiUnreadable("this is not an OpenAPI 3.0 or 3.1 document", hint="Convert an older document first.")
    try:
        return _imported(document, source, server, prefix)
    except RecursionError:
        raise OpenApiUnreadable("the document is nested too deeply", hint="Simplify its schemas.") from None


def _imported(document: JsonObject, source: str, server: str, prefix: str) -> OpenApiImport:
    reader = _OpenApiReader(document)
    api_import = OpenApiImport()
    for operation in reader.operations():
        if len(api_import.tools) >= OPERATIONS_MAX:
            api_import.losses.append(f"only the first {OPERATIONS_MAX} operations were read")
            break
        name = _name(prefix + operation.name, api_import.tools)
        try:
            api_import.tools[name] = reader.tool(
                operation, _server(reader, operation, source, server), api_import.losses
            )
        except OpenApiUnreadable as why:
            api_import.losses.append(f"{operation.method.upper()} {operation.path}: omitted: {why}")
    if not api_import.tools:
        why = f": {api_import.losses[0]}" if api_import.losses else ""
        raise OpenApiUnreadable(f"the document has no operation that can be called{why}", hint="Give --server URL.")
    return api_import


@dataclass(frozen=True, slots=True)
class _Operation:
    path: str
    method: str
    said: JsonObject
    shared: JsonObject
    """Settings of the path that apply to all its operations."""

    @property
    def name(self) -> str:
        operation_id = self.said.get("operationId")
        return operation_id if isinstance(operation_id, str) and operation_id else f"{self.method}{self.path}"


class _OpenApiReader:
    def __init__(self, document: JsonObject) -> None:
        self.document = document

    def operations(self) -> Iterator[_Operation]:
        for path, item in _entries(self.document.get("paths")):
            shared = self.resolved(item)
            for method in METHODS:
                operation = shared.get(method)
                if isinstance(operation, dict):
                    yield _Operation(path, method, operation, shared)

    def resolved(self, value: Json) -> JsonObject:
        """Return an object with its own reference followed. Raises `OpenApiUnreadable` for a broken or circular one."""
        for _ in range(REFERENCES_MAX):
            if not isinstance(value, dict):
                return {}
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self._at(reference)
        raise OpenApiUnreadable("a reference refers to itself", hint="Repair the document.")

    def _at(self, reference: str) -> Json:
        if not reference.startswith("#/"):
            raise OpenApiUnreadable(f"{reference!r} refers to another document", hint="Bundle it into one file.")
        result: Json = self.document
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(result, dict) or key not in result:
                raise OpenApiUnreadable(f"{reference!r} refers to nothing", hint="Repair the document.")
            result = result[key]
        return result

    def tool(self, operation: _Operation, server: str, losses: list[str]) -> JsonObject:
        url, query, headers = server.rstrip("/") + operation.path, dict[str, Json](), dict[str, Json]()
        arguments = _Arguments(self)
        for parameter in self._parameters(operation):
            name, where = str(parameter.get("name", "")), parameter.get("in")
            if where == "cookie" or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
                if parameter.get("required"):
                    raise OpenApiUnreadable(f"its {where} parameter {name!r} cannot be set")
                losses.append(f"{operation.name}: the {where} parameter {name!r} was omitted")
                continue
            argument = arguments.add(
                name, parameter.get("schema"), parameter, required=parameter.get("required") is True
            )
            if where == "path":
                url = url.replace("{" + name + "}", "{" + argument + "}")
            elif where == "query":
                query[name] = "{" + argument + "}"
            elif where == "header" and name.lower() not in ("accept", "content-type", "authorization"):
                headers[name] = "{" + argument + "}"
        described: JsonObject = {
            "description": _description(operation.said),
            "method": operation.method.upper(),
            "url": url,
            "query": query,
            "headers": headers,
        }
        self._body(operation, arguments, described)
        self._security(operation, described, losses)
        return {**{key: value for key, value in described.items() if value != {}}, "parameters": arguments.schema()}

    def _parameters(self, operation: _Operation) -> list[JsonObject]:
        """Return the parameters of the path, overridden by those of the operation."""
        result: dict[tuple[str, str], JsonObject] = {}
        for listed in (operation.shared.get("parameters"), operation.said.get("parameters")):
            for one in listed if isinstance(listed, list) else []:
                parameter = self.resolved(one)
                result[str(parameter.get("name")), str(parameter.get("in"))] = parameter
        return [*result.values()]

    def _body(self, operation: _Operation, arguments: _Arguments, described: JsonObject) -> None:
        body = self.resolved(operation.said.get("requestBody"))
        content = body.get("content")
        if not isinstance(content, dict) or not content:
            return
        kind = next((part for part in content if "json" in part or part == "*/*"), None)
        if kind is None:
            kind = next((part for part in content if part.startswith("text/")), None)
        if kind is None:
            raise OpenApiUnreadable(f"its body is {', '.join(sorted(content))}, not JSON or text")
        media = self.resolved(content[kind])
        argument = arguments.add(BODY, media.get("schema"), body, required=body.get("required") is True)
        described["body"] = "{" + argument + "}"
        if kind != "*/*":
            headers = cast("JsonObject", described["headers"])
            headers["Content-Type"] = kind

    def _security(self, operation: _Operation, described: JsonObject, losses: list[str]) -> None:
        """Apply the first supported security requirement; its secrets are handles named after the schemes."""
        requirements = operation.said.get("security", self.document.get("security"))
        alternatives = (
            [requirement for requirement in requirements if isinstance(requirement, dict)]
            if isinstance(requirements, list)
            else []
        )
        components = self.document.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, dict) else None
        if not alternatives or {} in alternatives:
            return
        for alternative in alternatives:
            placed = [_placed(name, self.resolved(_entry(schemes, name))) for name in alternative]
            if all(place is not None for place in placed):
                for where, name, text in cast("list[tuple[str, str, str]]", placed):
                    cast("JsonObject", described[where])[name] = text
                return
        names = ", ".join(name for alternative in alternatives for name in alternative)
        losses.append(f"{operation.name}: it requires {names}; add it by hand")


class _Arguments:
    """Builds the schema of the arguments: numbers duplicate names and adds each referenced schema once."""

    def __init__(self, reader: _OpenApiReader) -> None:
        self._reader = reader
        self._properties: JsonObject = {}
        self._required: list[Json] = []
        self._defs: JsonObject = {}

    def add(self, name: str, schema: Json, description: JsonObject, *, required: bool) -> str:
        free = name
        while free in self._properties:
            free += "_"
        described = self._schema(schema if isinstance(schema, dict) else {})
        if (
            isinstance(described, dict)
            and isinstance(text := description.get("description"), str)
            and "description" not in described
        ):
            described = {**described, "description": text}
        self._properties[free] = described
        if required or description.get("in") == "path":
            self._required.append(free)
        return free

    def schema(self) -> JsonObject:
        result: JsonObject = {
            "type": "object",
            "properties": self._properties,
            "required": self._required,
            "additionalProperties": False,
        }
        return {**result, "$defs": self._defs} if self._defs else result

    def _schema(self, value: Json) -> Json:
        """Convert a schema of 3.0 to JSON Schema 2020-12. References point into `$defs`, so circular ones are safe."""
        if isinstance(value, list):
            return [self._schema(element) for element in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            name = _WORD.sub("_", reference.removeprefix("#/components/schemas/"))
            if name not in self._defs:
                self._defs[name] = True  # Ends the recursion of a schema that refers to itself.
                self._defs[name] = self._schema(self._reader.resolved({"$ref": reference}))
            return {"$ref": f"#/$defs/{name}"}
        dropped = (
            "discriminator",
            "xml",
            "externalDocs",
            "example",
            "nullable",
            "exclusiveMinimum",
            "exclusiveMaximum",
        )
        described = {
            key: self._inner(key, member)
            for key, member in value.items()
            if key not in dropped and not key.startswith("x-")
        }
        for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            bounds = value.get(strict)
            if bounds is True and bound in described:
                described[strict] = described.pop(bound)
            elif isinstance(bounds, int | float) and not isinstance(bounds, bool):
                described[strict] = bounds
        if value.get("nullable") is True:
            return {"anyOf": [described, {"type": "null"}]}
        return described

    def _inner(self, key: str, value: Json) -> Json:
        """Convert the value of a keyword; literal values are not schemas and stay as they are."""
        if key in ("enum", "const", "default", "examples", "required"):
            return value
        if key == "properties" and isinstance(value, dict):
            return {name: self._schema(member) for name, member in value.items()}
        return self._schema(value)


def _server(reader: _OpenApiReader, operation: _Operation, source: str, server: str) -> str:
    """Return the server address: `server`, or else that of the operation, the path or the document; relative ones are
    resolved against the address of the document."""
    listed = [server] if server else []
    for owner in (operation.said, operation.shared, reader.document):
        servers = owner.get("servers")
        listed += (
            [_filled(server) for server in servers if isinstance(server, dict)] if isinstance(servers, list) else []
        )
    url = urljoin(source, listed[0]) if listed else source and urljoin(source, "/")
    if not _ABSOLUTE.match(url):
        raise OpenApiUnreadable("the document does not contain the address of its server", hint="Give --server URL.")
    return url


def _filled(server: JsonObject) -> str:
    url = str(server.get("url", ""))
    for name, variable in _entries(server.get("variables")):
        if isinstance(variable, dict):
            url = url.replace("{" + name + "}", str(variable.get("default", "")))
    return url


def _placed(name: str, scheme: JsonObject) -> tuple[str, str, str] | None:
    """Return where the secret of a scheme is sent and its template; None: it needs a person or several calls."""
    handle = "{secret." + _WORD.sub("_", name).upper().replace("-", "_") + "}"
    kind, scheme_name = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    if kind == "apiKey" and scheme.get("in") in ("header", "query"):
        return ("headers" if scheme["in"] == "header" else "query"), str(scheme.get("name", "")), handle
    if kind == "http" and scheme_name in ("bearer", "basic"):
        return "headers", "Authorization", f"{scheme_name.capitalize()} {handle}"
    if kind in ("oauth2", "openIdConnect"):
        return "headers", "Authorization", f"Bearer {handle}"
    return None


def _description(operation: JsonObject) -> str:
    texts = [str(operation[key]).strip() for key in ("summary", "description") if operation.get(key)]
    return "\n".join(dict.fromkeys(texts))[:1000]


def _name(text: str, taken: JsonObject | dict[str, JsonObject]) -> str:
    name = _WORD.sub("_", text).strip("_")[:60] or "operation"
    name = name if not name[0].isdigit() else f"_{name}"
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _entries(value: Json) -> list[tuple[str, Json]]:
    return [*value.items()] if isinstance(value, dict) else []


def _entry(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, dict) else None
