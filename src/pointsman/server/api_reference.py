"""HTML reference of the API, rendered from the OpenAPI document: no scripts, no external files, one inline style sheet.

document ─▶ sections by tag ─▶ operations: parameters, body, curl example, responses, errors
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from typing import Final, NamedTuple, cast

from pointsman.server.openapi_document import METHODS, Described
from pointsman.server.problems import MEDIA_TYPE

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;--back:#fff;--code:#f3f5f7;--link:#0b57d0;
--get:#0a5c36;--post:#0b4fa8;--put:#7a4a00;--delete:#a3123f}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#a5adb6;--line:#3a424c;--back:#14181d;--code:#1f252c;
--link:#8ab4f8;--get:#7ee2a8;--post:#9cc4ff;--put:#f2c078;--delete:#ff9db5}}
*{box-sizing:border-box}
body{margin:0;color:var(--ink);background:var(--back);font:15px/1.5 system-ui,sans-serif;display:grid;
grid-template:"head head" auto "nav main" 1fr/17rem minmax(0,1fr)}
header{grid-area:head;padding:1.5rem 2rem 1rem;border-bottom:1px solid var(--line)}
h1{margin:0;font-size:1.5rem}h1 small{color:var(--dim);font-size:.9rem;font-weight:400}
h2{margin:2.5rem 0 .25rem;text-transform:capitalize}h3{margin:0;font-size:1.05rem}
h3 a{color:inherit;text-decoration:none}
nav{grid-area:nav;position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto;padding:1rem;
border-right:1px solid var(--line);font-size:.85rem}
nav ul{list-style:none;margin:0 0 .75rem;padding:0}nav a{display:block;padding:.3rem .25rem;text-decoration:none}
nav summary{text-transform:capitalize;font-weight:600;padding:.3rem 0}
main{grid-area:main;padding:0 2rem 4rem;max-width:64rem}
section{margin:1rem 0;padding:1rem;border:1px solid var(--line);border-radius:.5rem;scroll-margin-top:1rem}
section:target{border-color:var(--link);outline:2px solid var(--link)}
a{color:var(--link)}:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--back);padding:.5rem}
.address{margin:.25rem 0;overflow-wrap:anywhere}b{font-size:.8em}
.get{color:var(--get)}.post{color:var(--post)}.put,.patch{color:var(--put)}.delete{color:var(--delete)}
code,pre{font:13px/1.5 ui-monospace,monospace}code{background:var(--code);padding:.1em .3em;border-radius:.25em}
pre{background:var(--code);padding:.75rem;border-radius:.4rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}
table{width:100%;border-collapse:collapse;margin:.75rem 0;font-size:.88rem}
caption{text-align:left;color:var(--dim);padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .75rem .3rem 0;border-top:1px solid var(--line);
overflow-wrap:anywhere}
th{color:var(--dim);font-weight:500}details{margin:.4rem 0}summary{cursor:pointer;min-height:1.6rem}
@media (max-width:48rem){body{display:block}
nav{position:static;max-height:18rem;border:0;border-bottom:1px solid var(--line)}
header,main{padding-left:1rem;padding-right:1rem}table,tbody,tr,td{display:block}thead{display:none}
tr{border-top:1px solid var(--line);padding:.4rem 0}td{border:0;padding:0}td:first-child{font-weight:600}}
""".replace("\n", "")


POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FOLDED: Final = " \\\n     "
ADDRESS: Final = "http://localhost:8000"
EXAMPLE_CHARS_MAX: Final = 4000


class DocumentedOperation(NamedTuple):
    """Operation of the document."""

    method: str
    path: str
    told: Described

    @property
    def id(self) -> str:
        return str(self.told["operationId"])


def page_of(document: Described) -> str:
    """Render the page."""
    shapes = cast("Described", document["components"]["schemas"])
    parts: defaultdict[str, list[DocumentedOperation]] = defaultdict(list)
    for operation in _operations(document):
        parts[str(operation.told["tags"][0])].append(operation)
    tags = [tag for tag in document["tags"] if parts.get(str(tag["name"]))]
    contents = "".join(_contents(str(tag["name"]), parts[str(tag["name"])]) for tag in tags)
    body = "".join(_part(tag, parts[str(tag["name"])], shapes) for tag in tags)
    info = document["info"]
    title = f"{info['title']} API"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#operations">To the operations</a>'
        f"<header><h1>{_text(title)} <small>{_text(info['version'])}</small></h1><p>{_text(info['description'])}</p>"
        "<p>Show a key with each request: <code>Authorization: Bearer pm_…</code>. Errors are problem documents "
        f"(<code>{MEDIA_TYPE}</code>) with a <code>code</code> and a <code>hint</code>. For programs: "
        '<a href="/api/openapi.json">openapi.json</a>.</p></header>'
        f'<nav aria-label="Operations">{contents}</nav><main id="operations">{body}</main></body></html>\n'
    )


def _operations(document: Described) -> Iterator[DocumentedOperation]:
    for path, methods in cast("dict[str, Described]", document["paths"]).items():
        for method in METHODS:
            if method in methods:
                yield DocumentedOperation(method.upper(), path, methods[method])


def _contents(tag: str, operations: list[DocumentedOperation]) -> str:
    links = "".join(
        f'<li><a href="#{one.id}">{_method(one)} {_text(one.told["summary"])}</a></li>' for one in operations
    )
    return f"<details open><summary>{_text(tag)}</summary><ul>{links}</ul></details>"


def _method(one: DocumentedOperation) -> str:
    return f'<b class="{one.method.lower()}">{one.method}</b>'


def _part(tag: Described, operations: list[DocumentedOperation], shapes: Described) -> str:
    sections = "".join(_operation(one, shapes) for one in operations)
    return f"<h2>{_text(tag['name'])}</h2><p>{_text(tag['description'])}</p>{sections}"


def _operation(one: DocumentedOperation, shapes: Described) -> str:
    body = cast("Described", one.told.get("requestBody", {}).get("content", {}))
    return (
        f'<section id="{one.id}"><h3><a href="#{one.id}">{_text(one.told["summary"])}</a></h3>'
        f'<p class="address">{_method(one)} <code>{_text(one.path)}</code></p>'
        f"<p>{_prose(str(one.told.get('description', '')))}</p>"
        f"{_parameters(one, shapes)}{_taken(body, shapes)}{_curl(one, body)}{_answered(one, shapes)}{_refused(one)}"
        "</section>"
    )


def _parameters(one: DocumentedOperation, shapes: Described) -> str:
    given = cast("list[Described]", one.told.get("parameters", ()))
    rows = [
        (str(each["name"]), str(each["in"]), _kind(each["schema"], shapes), bool(each.get("required")), _said(each))
        for each in given
        if each["in"] != "cookie"
    ]
    return _table("Parameters", ("name", "in", "type", "", "meaning"), rows)


def _taken(body: Described, shapes: Described) -> str:
    """Render tables of the fields of object bodies, one for each media type."""
    found = ""
    for media, content in body.items():
        shape = _resolved(content.get("schema", {}), shapes)
        required = cast("list[str]", shape.get("required", ()))
        fields = cast("dict[str, Described]", shape.get("properties", {}))
        rows = [(name, _kind(each, shapes), name in required, _said(each)) for name, each in fields.items()]
        found += _table(f"Body: {media}", ("name", "type", "", "meaning"), rows)
    return found


def _curl(one: DocumentedOperation, body: Described) -> str:
    lines = [f"curl -f -X {one.method} '{ADDRESS}{one.path}' -H 'authorization: Bearer pm_…'"]
    for media, content in body.items():
        lines += [f"-H 'content-type: {media}'"] if not media.startswith("multipart/") else []
        example = content.get("example")
        if example is not None:
            sent = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
            quoted = sent.replace("'", "'\\''")
            lines.append(f"-d '{quoted}'")
        break
    return f"<pre>{_text(FOLDED.join(lines))}</pre>"


def _answered(one: DocumentedOperation, shapes: Described) -> str:
    found = ""
    for status, answer in cast("dict[str, Described]", one.told["responses"]).items():
        if status >= "400":
            continue
        contents = cast("dict[str, Described]", answer.get("content", {}))
        told = "".join(_example(media, content, shapes) for media, content in contents.items())
        found += f"<details><summary>{status} {_text(answer['description'])}</summary>{told}</details>"
    return found


def _example(media: str, content: Described, shapes: Described) -> str:
    example = content.get("example")
    text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
    shown = text if len(text) <= EXAMPLE_CHARS_MAX else f"{text[:EXAMPLE_CHARS_MAX]}…"
    shape = _resolved(content.get("schema", {}), shapes)
    fields = cast("dict[str, Described]", shape.get("properties", {}))
    rows = [(name, _kind(each, shapes), _said(each)) for name, each in fields.items()]
    return f"{_table(media, ('name', 'type', 'meaning'), rows)}<pre>{_text(shown)}</pre>"


def _refused(one: DocumentedOperation) -> str:
    told = [
        f"<li><b>{status}</b> {_prose(str(answer['description']))}</li>"
        for status, answer in cast("dict[str, Described]", one.told["responses"]).items()
        if status >= "400"
    ]
    return f"<details><summary>Errors</summary><ul>{''.join(told)}</ul></details>" if told else ""


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str | bool, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{_text(each) or "needed"}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{_text(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: str | bool) -> str:  # noqa: FBT001 - a cell is whatever stands in it
    return f"<td>{('needed' if value else '') if isinstance(value, bool) else _prose(value)}</td>"


def _resolved(schema: Described, shapes: Described) -> Described:
    named = str(schema.get("$ref", "")).rpartition("/")[2]
    return cast("Described", shapes.get(named, {})) if named else schema


def _kind(schema: Described, shapes: Described, depth: int = 0) -> str:
    """Return a short description of the values that a schema accepts."""
    if "$ref" in schema:
        shape = _resolved(schema, shapes)
        return _kind(shape, shapes, depth + 1) if "enum" in shape else str(schema["$ref"]).rpartition("/")[2]
    options = cast("list[Described]", schema.get("anyOf") or schema.get("oneOf") or ())
    if options and depth < 4:
        return " or ".join(dict.fromkeys(_kind(each, shapes, depth + 1) for each in options))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        kind = f"list of {_kind(schema.get('items', {}), shapes, depth + 1)}" if depth < 4 else "list"
    return kind + _bounds(schema)


def _bounds(schema: Described) -> str:
    low = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
    high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    if low is None and high is None:
        return ""
    return f" ({'' if low is None else f'{low:g}'}…{'' if high is None else f'{high:g}'})"


def _said(schema: Described) -> str:
    return str(schema.get("description", ""))


def _prose(text: str) -> str:
    """Escape text and render backtick spans as code, unless a backtick has no counterpart."""
    parts = _text(text).split("`")
    closed = len(parts) % 2 == 1
    return "".join(f"<code>{part}</code>" if at % 2 and closed else part for at, part in enumerate(parts))


def _text(value: object) -> str:
    return escape(str(value))
