"""Braces that look like placeholders but are text: `{ x }`, `{{formatDate x}}`, `{len(x)}`, `$.x` in a sentence.

The template parser records which braces it left as text. JSON, code and empty braces are accepted here; braces that
seem to name data of this workflow are reported once for each text, with a fix if one is certain.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pointsman.definition.checks.formulas import CheckedTemplate, Formulas
from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.model.control import HumanConfig
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.policies import Approvers
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_to, replace_at, warning
from pointsman.expressions.environment import ROOTS, Names
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.functions import ALIASES
from pointsman.expressions.parser import parse_expression
from pointsman.expressions.paths import scan_path
from pointsman.expressions.syntax_tree import FunctionCall, Literal, Tree, heads_of, inside
from pointsman.expressions.template_parser import is_code, is_function
from pointsman.values import JsonObject

_SPAN: Final = 200
"""Maximum number of characters between a brace and the one that closes it; longer pieces are not placeholders."""
_DOUBLE: Final = re.compile(r"\{\{([^{}\n]*)\}\}")
_SINGLE: Final = re.compile(r"\{([^{}\n]*)\}")
_DATA: Final = re.compile(r"""\s*(?:$|["'\[\d*+-]|[\w$.-]+\s*:(?:\s|$)|[\w$]+\s*,|\.\.\.)""")
"""Contents of braces in JSON and code: quotes, numbers, `key: value`, lists of names."""
_HELPER: Final = re.compile(r"\s*[#/>&^.]")
"""Handlebars and Go: partials, raw values, parents."""
_NAMES_DATA: Final = re.compile(r"\s*[A-Za-z_@$(]")
_FORMAT: Final = re.compile(r"\s*([\w.\[\]-]+)(?:!([rsa]))?(?::([^\s{}\"']{0,12})|(?<=![rsa])|=)\s*")
_ROUND: Final = re.compile(r"\.(\d)f")
_POSITIONAL: Final = re.compile(r"\d{0,3}(?:\.[^\W\d]\w*|\[\w+\])*(?:![rsa])?(?::([^\s\"'{}]{1,12}))?")
"""`{}`, `{0}`, `{0.name}`, `{:.2f}`: the placeholders without names of Python, C# and Java."""
_EMPTY_OBJECT: Final = re.compile(
    r"(?:[=>&|+?`]|\w\(|[\"']\s?:|\b(?:answer|answers|as|empty|json|object|or|output|outputs|reply|respond|return|returns"
    r"|use|with|yield|yields))\s*\Z",
    re.IGNORECASE,
)
"""Text before an empty pair of braces that means an empty object, or is code."""
_CALL: Final = re.compile(r"\s*([^\W\d][\w.]*)\(\s*\)\s*")
_DOLLAR: Final = re.compile(r"(?<![\w{$])\$\.(?=[A-Za-z_])")
_WORDS: Final = re.compile(r"\s*([^\W\d][\w-]*(?: +[\w-]+){1,3})\s*")
"""`{customer name}`: the label of a form field instead of its name."""
_PATH: Final = r"[^\W\d][\w.\[\]-]{0,99}"
_NAME: Final = r"[^\W\d]\w{0,99}(?:\.[^\W\d]\w{0,99}|\[-?\d{1,9}\]){0,20}"
"""A path without dashes; a period at the end of a sentence does not belong to it."""
_FOREIGN: Final = re.compile(
    rf"<%[=-]?\s{{0,9}}({_PATH})\s{{0,9}}-?%>|\[\[\s{{0,9}}({_PATH})\s{{0,9}}\]\]|\$\(\s{{0,9}}({_PATH})\s{{0,9}}\)"
    rf"|\$\[\s{{0,9}}({_PATH})\s{{0,9}}\]|<<\s{{0,9}}({_NAME})\s{{0,9}}>>|(?<![\w%])%({_NAME})%(?![\w%])"
    rf"|%\(({_PATH})\)s|\{{%-?\s{{0,9}}({_PATH})\s{{0,9}}-?%\}}|\{{\$({_PATH})\}}|\{{\{{=\s{{0,9}}({_PATH})\s{{0,9}}\}}\}}"
    rf"|(?<![\w$\\{{(])\$({_NAME})|｛\s{{0,9}}({_PATH})\s{{0,9}}｝"
)
"""Placeholders of ERB, wikis, shells, Windows, Python's `%`, Jinja's statements, PHP, mail merges and older templates;
full-width braces."""
_BLANKS: Final = r"[\s\u200b-\u200d\u2060\ufeff]{0,9}"
"""White space, also of zero width: it is copied along with text from web pages."""
_STRAY: Final = re.compile(rf"[|,]?{_BLANKS}({_NAME}){_BLANKS}[|,]?{_BLANKS}")
"""`{|x}`, `{x|}`, and a name between blanks of zero width."""
_WRAPPED: Final = re.compile(rf"\{{[ \t]{{0,9}}\n\s{{0,99}}({_NAME})\s{{0,99}}\}}")
"""A name on a line of its own between single braces."""
_UNBALANCED: Final = re.compile(
    rf"(?<![\\{{])(?P<open>\{{\{{?)\s{{0,9}}(?P<path>{_NAME})"
    rf"(?:(?P<pipes>(?:\s{{0,9}}\|[^{{}}\n]{{0,99}})?)\s{{0,9}}(?P<close>\}}{{1,2}})|(?!\w|[^{{}}\n]{{0,200}}\}}))"
)
"""`{x`, `{{x}`, `{x}}`: a placeholder with one brace too many or too few."""
_SIGNED: Final = re.compile(rf"(?:(?<![\w$])\$|^\s*=)(?=(\{{\{{?)\s*({_PATH}))")
"""`${x}` of JavaScript and shells, `={{ x }}` of n8n: the placeholder is filled in, but its sign stays."""
_FENCE: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_ROOTED: Final = re.compile(r"(?:state|data|input|nodes|nodeOutputs)[.\[]")
_NAMED_IN_MESSAGE: Final = 4
_SEARCHES: Final = frozenset({"contains", "split", "replace", "startsWith", "endsWith", "matches"})
"""Functions that search for their second argument in the first."""


class _Suspect(NamedTuple):
    """A piece of text that was probably meant as a placeholder."""

    at: int
    end: int
    instead: str
    """Replacement; empty if it is not certain."""


def check_placeholders(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    nodes = frozenset(subject.graph.index)
    numbers = _numbers(subject.workflow)
    for text in formulas.texts:
        yield from _signs(text, numbers)
        suspects = [*_suspects(text, nodes)]
        if suspects:
            yield _reported(text, _certain(text.place.text, suspects))
    for place, expression in formulas.expressions:
        if "{" not in expression.source:
            continue
        for written in _texts_of(expression.tree):
            if _placeholder_in(written, expression.names):
                message = f"the text {written[:60]!r} in this expression is not a template: it stays as it is"
                hint = "An expression names data without braces and quotes: `score > 3`."
                yield warning("literal-placeholder", place.pointer, message, hint=hint)


def check_fixed_texts(subject: Subject) -> Iterator[Problem]:
    """Report placeholders in texts of gates that are not templates."""
    for number, node in enumerate(subject.nodes):
        for parts, text in _fixed(node):
            if "{" in text and _placeholder_in(text, subject.names):
                message = f"{text[:60]!r} at node {node.id!r} is not a template: it is used unchanged"
                hint = "Write a fixed text. Put variable parts into `message` and `show`."
                yield warning("literal-placeholder", pointer_to("nodes", number, *parts), message, hint=hint)


def _fixed(node: Node) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts of a node that people see or that name people, with their positions."""
    config, human = node.config, ("config",)
    if node.name is not None:
        yield ("name",), str(node.name)
    if node.approval is not None:
        yield from _approver_texts(node.approval.approvers, ("approval", "approvers"))
        for at, level in enumerate(node.approval.escalation or ()):
            yield from _approver_texts(level.approvers, ("approval", "escalation", at, "approvers"))
    if not isinstance(config, HumanConfig):
        return
    if config.title is not None:
        yield (*human, "title"), str(config.title)
    for at, option in enumerate(config.options or ()):
        yield (*human, "options", at, "value"), option.value
        yield (*human, "options", at, "label"), str(option.label or "")
    yield from _approver_texts(config.approvers, (*human, "approvers"))
    for at, level in enumerate(config.escalation or ()):
        yield from _approver_texts(level.approvers, (*human, "escalation", at, "approvers"))


def _approver_texts(
    approvers: Approvers | None, place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if approvers is None:
        return
    for at, name in enumerate(approvers.users or ()):
        yield (*place, "users", at), name
    for at, name in enumerate(approvers.groups or ()):
        yield (*place, "groups", at), name


def _reported(text: CheckedTemplate, suspects: Sequence[_Suspect]) -> Problem:
    source = text.place.text
    shown_names = listed(dict.fromkeys(source[suspect.at : suspect.end] for suspect in suspects[:_NAMED_IN_MESSAGE]))
    more = f" and {len(suspects) - _NAMED_IN_MESSAGE} more" if len(suspects) > _NAMED_IN_MESSAGE else ""
    message = f"{shown_names}{more} {'is' if len(suspects) == 1 else 'are'} plain text, not placeholders"
    instead = next((suspect.instead for suspect in suspects if suspect.instead), "")
    hint = f"Write {instead}" if instead else "A placeholder is {path}, {path | upper} or {{ expression }}"
    fix = None
    if all(suspect.instead for suspect in suspects):
        pieces, at = list[str](), 0
        for suspect in suspects:
            pieces += [source[at : suspect.at], suspect.instead]
            at = suspect.end
        fix = replace_at(text.place.pointer, "".join((*pieces, source[at:])))
    hint = f"{hint}; or \\{{ for a brace that is text."
    return warning("literal-placeholder", text.place.pointer, message, hint=hint, fix=fix)


def _certain(source: str, suspects: Sequence[_Suspect]) -> Sequence[_Suspect]:
    """Drop the repairs of placeholders without names if there are several: they cannot all mean the only field."""
    unnamed = [_POSITIONAL.fullmatch(source, suspect.at + 1, suspect.end - 1) is not None for suspect in suspects]
    if sum(unnamed) < 2:
        return suspects
    return [
        suspect._replace(instead="") if is_one else suspect for suspect, is_one in zip(suspects, unnamed, strict=True)
    ]


def _signs(text: CheckedTemplate, numbers: frozenset[str]) -> Iterator[Problem]:
    """Report the first sign of another language before a placeholder. A dollar before a number may be intended."""
    source, literal = text.place.text, frozenset(text.literal)
    for match in _SIGNED.finditer(source):
        sign, braces, name = match[0].strip(), match[1], match[2]
        path = scan_path(name)
        is_money = sign == "$" and name in numbers
        if path is None or is_money or match.end() in literal or not _knows(path.tree(), text.names):
            continue
        closed = source.find("}" * len(braces), match.end())
        written = source[match.end() : closed + len(braces)]
        message = f"{sign + written!r} gives {sign!r} and the value: the sign remains in the text"
        hint = f"Write {written}; to keep the sign, put a space after it."
        fix = replace_at(text.place.pointer, f"{source[: match.end() - 1]}{source[match.end() :]}")
        yield warning("literal-placeholder", text.place.pointer, message, hint=hint, fix=fix)
        return


def _numbers(workflow: WorkflowDefinition) -> frozenset[str]:
    """Return the fields of the input and the state that are declared as numbers."""
    properties = (workflow.input_schema or {}).get("properties")
    schemas = dict(properties) if isinstance(properties, dict) else JsonObject()
    schemas |= {name: value.schema_ for name, value in (workflow.state or {}).items()}
    return frozenset(
        name
        for name, schema in schemas.items()
        if isinstance(schema, dict) and schema.get("type") in ("number", "integer")
    )


def _foreign(source: str, names: Names) -> dict[int, _Suspect]:
    """Return placeholders in the syntax of other languages that name data of the workflow, by offset."""
    suspects = dict[int, _Suspect]()
    for match in _FOREIGN.finditer(source):
        name = next(group for group in match.groups() if group is not None)
        path = scan_path(name)
        if path is not None and path.end == len(name) and _knows(path.tree(), names):
            suspects[match.start()] = _Suspect(match.start(), match.end(), f"{{{name}}}")
    if source.count("{") != source.count("}"):
        suspects |= _unbalanced(source, names)
    return suspects


def _unbalanced(source: str, names: Names) -> dict[int, _Suspect]:
    """Return placeholders with too many or too few braces, by offset."""
    suspects = dict[int, _Suspect]()
    for match in _UNBALANCED.finditer(source):
        opened, closed, path = match["open"], match["close"] or "", scan_path(match["path"])
        if len(opened) == len(closed) or path is None or not _knows(path.tree(), names):
            continue
        before, after = ("{{ ", " }}") if "}}" in closed or "{{" in opened else ("{", "}")
        written = f"{before}{match['path']}{(match['pipes'] or '').rstrip()}{after}"
        suspects[match.start()] = _Suspect(match.start(), match.end(), written)
    return suspects


def _suspects(text: CheckedTemplate, nodes: frozenset[str]) -> Iterator[_Suspect]:
    source, names = text.place.text, text.names
    if text.whole and _ROOTED.match(source) and (path := scan_path(source)) and path.end == len(source):
        tree = path.tree()
        if any(_is_data(head, names, nodes) for head in heads_of(tree)):
            yield _Suspect(0, len(source), f"{{{source}}}")
        return
    fences = [match.start() for match in _FENCE.finditer(source)] if text.literal else []
    brace, at = list(text.literal), 0
    dollars = [match.start() for match in _DOLLAR.finditer(source)] if "$." in source else []
    foreign, literal = _foreign(source, names), frozenset(brace)
    for position in sorted({*brace, *dollars, *foreign}):
        if position < at or bisect_right(fences, position) % 2:
            continue
        if position in foreign:
            suspect = foreign[position]
        elif source[position] == "$":
            suspect = None if _is_filled_in(source, position, literal) else _dollar(source, position, names)
        else:
            suspect = _brace(source, position, names, nodes)
        if suspect is not None:
            at = suspect.end
            yield suspect


def _is_filled_in(source: str, at: int, literal: frozenset[int]) -> bool:
    """Return whether an offset is inside a placeholder: `{{ $.x }}`."""
    brace = source.rfind("{", max(0, at - _SPAN), at)
    if brace < 0 or "}" in source[brace:at]:
        return False
    return brace not in literal and brace - 1 not in literal


def _dollar(source: str, at: int, names: Names) -> _Suspect | None:
    """Match `$.x` in a sentence: it is a path only if the text consists of nothing else."""
    path = scan_path(source, at)
    if path is None or not _knows(path.tree(), names):
        return None
    return _Suspect(at, path.end, f"{{{source[at + 2 : path.end]}}}")


def _brace(source: str, at: int, names: Names, nodes: frozenset[str]) -> _Suspect | None:
    if match := _DOUBLE.match(source, at, at + _SPAN):
        body = match[1]
        if words := _WORDS.fullmatch(body):
            return _Suspect(at, match.end(), _named(words[1], names, "{{", "}}"))
        if body.strip().isdecimal():
            return _Suspect(at, match.end(), "")
        if _HELPER.match(body) or (_NAMES_DATA.match(body) and not _DATA.match(body)):
            return _Suspect(at, match.end(), "")
        return None
    match = _SINGLE.match(source, at, at + _SPAN)
    if match is None:
        return _wrapped(source, at, names)
    if ";" in match[1]:
        return None
    body, end = match[1], match.end()
    if unnamed := _POSITIONAL.fullmatch(body):
        return _unnamed(source, at, end, unnamed, names)
    if called := _CALL.fullmatch(body):
        return _called(source, at, end, called[1], names)
    return _named_in_single(source, at, end, body, names, nodes)


def _wrapped(source: str, at: int, names: Names) -> _Suspect | None:
    """Match the braces around a field that is on a line of its own."""
    match = _WRAPPED.match(source, at)
    path = None if match is None else scan_path(match[1])
    if match is None or path is None or not _knows(path.tree(), names) or is_code(source, at, match.end()):
        return None
    return _Suspect(at, match.end(), f"{{{match[1]}}}")


def _named_in_single(source: str, at: int, end: int, body: str, names: Names, nodes: frozenset[str]) -> _Suspect | None:
    """Match the braces around a field, a label or an expression."""
    if (formatted := _FORMAT.fullmatch(body)) and (path := scan_path(formatted[1])) and path.end == len(formatted[1]):
        return _formatted(at, end, formatted, names)
    words = _WORDS.fullmatch(body)
    instead = _named(words[1], names, "{", "}") if words else _without_strays(body, names)
    if instead:
        return _Suspect(at, end, instead)
    if _DATA.match(body) or is_code(source, at, end):
        return None
    if words:
        is_tex = source[at - 1 : at].isalnum() or source[at - 1 : at] == "}"
        return None if is_tex else _Suspect(at, end, "")
    path = scan_path(stripped := body.strip())
    if path is not None and path.end == len(stripped):
        return _Suspect(at, end, f"{{{stripped}}}") if body != stripped and len(path.keys) > 0 else None
    try:
        tree = parse_expression(stripped)
    except ExpressionError:
        return None
    if any(_is_data(head, names, nodes) for head in heads_of(tree)):
        calls = all(is_function(tree_node.name) for tree_node in inside(tree) if isinstance(tree_node, FunctionCall))
        return _Suspect(at, end, f"{{{{ {stripped} }}}}" if calls else "")
    return None


def _unnamed(source: str, at: int, end: int, match: re.Match[str], names: Names) -> _Suspect | None:
    """Match a placeholder without a name. Empty objects, code, TeX (`x^{2}`) and patterns (`[a-z]{3}`) are text."""
    before = source[max(0, at - _SPAN) : at]
    is_inside = before.count("{") + before.count("[") > before.count("}") + before.count("]")
    if is_inside or source[end : end + 1] == "`" or re.search(r"[\w\\}\])^$]\Z", before):
        return None
    if not match[0] and (_EMPTY_OBJECT.search(before) or source.strip() == "{}"):
        return None
    if len(names.declared) != 1:
        return _Suspect(at, end, "")
    rounded = _ROUND.fullmatch(match[1] or "")
    (name,) = names.declared
    return _Suspect(at, end, f"{{{name} | round({rounded[1]})}}" if rounded else f"{{{name}}}")


def _called(source: str, at: int, end: int, name: str, names: Names) -> _Suspect | None:
    """Match `{x()}` and `{x.upper()}`: a field is not called, and its methods are functions here."""
    field, _, method = name.rpartition(".")
    field = field if is_function(method) and field else name
    path = scan_path(field)
    if path is not None and path.end == len(field) and _knows(path.tree(), names):
        piped = f" | {method}" if field != name else ""
        return _Suspect(at, end, "" if "." in field else f"{{{field}{piped}}}")
    return None if is_code(source, at, end) or source[at - 1 : at].isalnum() else _Suspect(at, end, "")


def _without_strays(body: str, names: Names) -> str:
    """Return the placeholder for the field between stray characters
    (`x|`); empty without pipes or without such a field."""
    match = _STRAY.fullmatch(body)
    if match is None or body.strip() == match[1]:
        return ""
    path = scan_path(match[1])
    return f"{{{match[1]}}}" if path is not None and _knows(path.tree(), names) else ""


def _named(words: str, names: Names, before: str, after: str) -> str:
    """Return the placeholder for the only field with this name, in any style; empty if none exists."""
    if words in names.declared:
        return f'{before}state["{words}"]{after}'
    candidates = [name for name in names.declared if _letters(name) == _letters(words)]
    return f"{before}{candidates[0]}{after}" if len(candidates) == 1 else ""


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _formatted(at: int, end: int, match: re.Match[str], names: Names) -> _Suspect | None:
    """Match `{x:.2f}` and `{x!r}` of Python, where x is a name of the workflow."""
    path = scan_path(match[1])
    if path is None or not _knows(path.tree(), names):
        return None
    rounded = _ROUND.fullmatch(match[3] or "")
    if rounded:
        return _Suspect(at, end, f"{{{match[1]} | round({rounded[1]})}}")
    return _Suspect(at, end, f"{{{match[1]}}}" if match[2] or not match[3] else "")


def _knows(tree: Tree, names: Names) -> bool:
    return any(_is_data(head, names, frozenset()) for head in heads_of(tree))


def _is_data(path: tuple[str, ...], names: Names, nodes: frozenset[str]) -> bool:
    """Return whether a path starts at data of the workflow."""
    name, *keys = path
    if name in names.as_names or name in names.declared:
        return True
    match ROOTS.get(name):
        case None:
            return False
        case "state" | "input":
            return bool(keys) and keys[0] in names.declared
        case "nodes":
            return bool(keys) and keys[0] in nodes
        case _:
            return False


def _texts_of(tree: Tree) -> Iterator[str]:
    """Return the quoted texts of an expression, except those that functions search
    for in another text, such as the second argument of `split(task, "{item}")`."""
    trees = [*inside(tree)]
    calls = [one for one in trees if isinstance(one, FunctionCall) and ALIASES.get(one.name, one.name) in _SEARCHES]
    sought = {id(text) for call in calls for text in call.arguments[1:2]}
    for one in trees:
        if isinstance(one, Literal) and isinstance(one.value, str) and id(one) not in sought:
            yield one.value


def _placeholder_in(text: str, names: Names) -> bool:
    for match in re.finditer(r"\{\{?\s*", text):
        path = scan_path(text, match.end())
        if path is not None and text[path.end :].lstrip().startswith("}") and _knows(path.tree(), names):
            return True
    return False
