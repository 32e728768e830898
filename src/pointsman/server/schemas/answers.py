"""Documented responses of operations: the successful one, and the errors that callers should expect, with examples;
and the schemas of views, generated from the types that the domains return, with an example of each view.

    responses=answers(ExecutionView, "unknown-execution", "wrong-status", body=True)

An error is given by its code, which determines the status, or by a status alone. Errors of every operation are added:
missing key, missing role, invalid parameters, too many requests; with `body` also invalid JSON, too large, wrong type.
`application.document_of` removes errors that an operation without parameters or JSON body cannot return.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from itertools import pairwise
from types import GenericAlias
from typing import Any, Final, TypeAlias, TypeVar, cast, get_args, get_type_hints

from pydantic import TypeAdapter
from typing_extensions import get_original_bases, is_typeddict

from pointsman.executions.dry_run import DryRunView
from pointsman.executions.lists import ExecutionEntry, InboxPage
from pointsman.executions.pages import EventPage, ExecutionPage
from pointsman.executions.views import ExecutionView, GateView, SignalledExecution, StartedExecution, UsageView
from pointsman.server.problems import MEDIA_TYPE, FieldProblem, ProblemDocument, phrase_of, problem_document
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.revisions import WorkflowEntryView
from pointsman.workflows.versions import NamedVersionView

View = TypeVar("View", bound=Mapping[str, object])
REFERENCE: Final = "#/components/schemas/{model}"
_VIEWS: Final[dict[str, type[Any]]] = {}
"""Documented views by name."""
_EXAMPLES: Final[dict[str, list[Json]]] = {}
"""Examples by the name of their view."""


def example(view: type[View], shown: View) -> None:
    """Add an example to the documentation of a view."""
    _EXAMPLES.setdefault(view.__name__, []).append(cast("Json", shown))


def reference_to(view: type[Any]) -> dict[str, Any]:
    """Return the schema that refers to a view; the document then contains the view."""
    _VIEWS[view.__name__] = view
    return {"$ref": REFERENCE.format(model=view.__name__)}


def view_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of all documented views, and of the views inside them, by name."""
    every: Any = GenericAlias(tuple, (*_VIEWS.values(),))  # One tuple: each schema is generated once.
    whole = TypeAdapter[object](every)
    made = cast("dict[str, dict[str, Any]]", whole.json_schema(ref_template=REFERENCE).get("$defs", {}))
    for name, schema in made.items():
        if schema.get("type") == "object":
            schema["additionalProperties"] = True  # Answers may have more members than described.
        if name in _EXAMPLES:
            schema["examples"] = _EXAMPLES[name]
    for view in _typed_dicts_in(every):
        for key, text in _descriptions(view).items():
            made[view.__name__]["properties"][key]["description"] = text
    return made


def _typed_dicts_in(annotation: object) -> Iterator[type]:
    """Iterate over the views in an annotation, and over those inside them, each once."""
    types, left = set[object](), [annotation]
    while left:
        one = left.pop()
        if is_typeddict(one) and one not in types:
            types.add(one)
            left += get_type_hints(one).values()
            yield cast("type", one)
        elif not is_typeddict(one):
            left += get_args(one)


def _descriptions(view: type) -> dict[str, str]:
    """Return the docstrings of the keys of a view. pydantic would omit those of its bases."""
    result: dict[str, str] = {}
    for base in get_original_bases(view):
        if is_typeddict(base):
            result |= _descriptions(cast("type", base))
    return result | _docstrings_in(view.__module__).get(view.__qualname__, {})


@cache
def _docstrings_in(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of attributes by class, from the source of a module."""
    classes = (one for one in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(one, ast.ClassDef))
    return {one.name: dict(_docstrings_of(one.body)) for one in classes}


def _docstrings_of(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for member, text in pairwise(body):
        match member, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                yield name, " ".join(docstring.split())
            case _:
                pass


Described: TypeAlias = dict[int | str, dict[str, Any]]

CODE: Final = re.compile(r"`([a-z0-9-]+)`")
_ANYBODY: Final = (403, 422)
"""Wrong host or origin (403), invalid parameters (422)."""
_EVERYWHERE: Final = (*_ANYBODY, 401, 429)
"""Additionally, operations with authentication: missing key (401), too many requests (429)."""
_BAD_BODY: Final = (400, 413, 415)


def answers(view: type[Any], *errors: int | str, status: int = 200, body: bool = False, asks: bool = True) -> Described:
    """Return the responses of an operation. `view`: the type of its answer. `body`: it reads a JSON body.
    `asks`: it requires a key."""
    return answer(view, phrase_of(status), status=status) | refusals(*errors, body=body, asks=asks)


def json_answer(example: Json, description: str = "OK") -> Described:
    """Return a response that is any JSON value: the workflow or another document determines its form."""
    return {200: {"description": description, "content": {"application/json": {"schema": {}, "example": example}}}}


def answer(view: type[Any], description: str, *, status: int = 200) -> Described:
    """Return one response: the view that is sent."""
    content = {"application/json": {"schema": reference_to(view)}}
    return {status: {"description": description, "content": content}}


def refusals(*errors: int | str, body: bool = False, asks: bool = True) -> Described:
    """Return the error responses of an operation; `body` and `asks` as in `answers`."""
    usual = _EVERYWHERE if asks else _ANYBODY
    codes: defaultdict[int, list[str]] = defaultdict(list)
    if "workflow-invalid" in errors:  # Such an operation reads a document.
        errors = (*errors, "document-too-expensive")
    for error in errors:
        if isinstance(error, str):
            codes[SAMPLES[error][0]].append(error)
    numbers = {one for one in errors if isinstance(one, int)}
    for status in {*usual, *numbers, *(_BAD_BODY if body else ())}:
        if USUAL[status] not in codes[status] and (status in usual or not codes[status]):
            codes[status].append(USUAL[status])
    return {status: _refusal(status, codes[status]) for status in sorted(codes)}


def with_code(described: dict[str, Any], status: int, code: str) -> dict[str, Any]:
    """Add an error code to an error response."""
    made = _refusal(status, [*{*CODE.findall(str(described["description"])), code}])
    return {**made, "content": {**described.get("content", {}), **made["content"]}}


def refusal_of(code: str) -> dict[str, Any]:
    """Return the error response of one code."""
    return _refusal(SAMPLES[code][0], [code])


def text_answer(media_type: str, example: str, *, status: int = 200) -> Described:
    """Return a text response."""
    content = {media_type: {"schema": {"type": "string"}, "example": example}}
    return {status: {"description": phrase_of(status), "content": content}}


def bytes_answer(media_type: str = "application/octet-stream", *, status: int = 200) -> Described:
    """Return a binary response."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}, "example": "(the file)"}}
    return {status: {"description": phrase_of(status), "content": content}}


def raw_body(content: Mapping[str, tuple[JsonObject, Json]]) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation that parses its body itself: by media type a schema and an example."""
    described = {media: {"schema": schema, "example": example} for media, (schema, example) in content.items()}
    return {"requestBody": {"required": True, "content": described}}


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    code_list = ", ".join(f"`{code}`" for code in sorted(codes))
    return {
        "description": f"{phrase_of(status)}: {code_list}",
        "content": {
            MEDIA_TYPE: {
                "schema": reference_to(ProblemDocument),
                "examples": {code: {"value": sample_of(code)} for code in sorted(codes)},
            }
        },
    }


EXECUTION_ID: Final = "exec-06f0c2k8s3v7q9y1m4t5w6x8z0"
SHOWN: Final = "`GET /api/workflows/executions` lists the executions."

SAMPLES: Final[Mapping[str, tuple[int, str, str]]] = {
    "action-not-offered": (422, "the gate has no option 'ship'", "Its options: approve, again."),
    "agent-invalid": (400, "'a/b' is not a valid agent name", "At most 100 letters, digits, `. _ -`."),
    "agent-taken": (409, "the name 'writer' is taken", "Choose another name."),
    "answer-differs": (409, "'review' was answered differently under this key", "Use a new key for a new answer."),
    "answer-invalid": (422, "'reprt' cannot be edited at this gate", "Did you mean 'report'? Editable: report."),
    "body-invalid": (400, "the body is not JSON: Expecting value at character 0", "Send JSON."),
    "body-too-large": (
        413,
        "the body has more than 64000000 bytes",
        "Send the address of the data instead of the data.",
    ),
    "built-in-workflow": (
        409,
        "'builtin:iterate' is built in: it is read-only",
        "Clone it and change the clone: pointsman workflows clone builtin:iterate my-iterate",
    ),
    "credential-invalid": (422, "the client secret is missing", "Enter what the service registered."),
    "credential-not-connected": (
        409,
        "the token server 'id.example.com' refused: invalid_client",
        "Check client id, secret and scopes, or connect the credential again.",
    ),
    "authorization-refused": (422, "the answer belongs to no visit", "Connect the credential again."),
    "cursor-invalid": (400, "'next' is not a position in an inbox", "Use the `cursor` of an entry."),
    "definition-missing": (
        503,
        "the store has no definition af7cd274bdd7",
        "It was deleted, or this is another store.",
    ),
    "design-failed": (400, "the model could not change 'letter' in 2 rounds", "Rephrase the description."),
    "document-too-expensive": (
        422,
        "the document needs more than 5 s of processor time",
        "Make the document smaller or simpler.",
    ),
    "edit-refused": (
        422,
        "there is no open branch 'each[1.0]'",
        "The execution view lists the open branches.",
    ),
    "execution-exists": (409, f"the execution {EXECUTION_ID!r} already exists", "Import it as a copy."),
    "execution-unfinished": (409, f"{EXECUTION_ID!r} is waiting: only ended executions can be deleted", "Cancel it."),
    "field-not-patched": (422, "a patch cannot change 'nodes'", "Replace the document with PUT."),
    "files-too-large": (413, "the files have 30000000 bytes", "At most 20000000 bytes together."),
    "answer-link-expired": (
        410,
        "this link has expired",
        "The web app shows the open gates to people with an account.",
    ),
    "answer-link-invalid": (404, "this link is not valid", "Open the link exactly as it stands in the message."),
    "answer-link-used": (
        409,
        "you have answered this question already",
        "The web app shows the open gates to people with an account.",
    ),
    "gate-changed": (409, "the gate of 'review' has changed since it was read", "Read the gate again."),
    "gate-closed": (409, "the gate 'review' was answered with 'approve' by 'ada'", "Read the execution again."),
    "gate-ambiguous": (409, "'review' has two open gates", "Name one: review[1.0], review[1.1]."),
    "import-refused": (400, "the export was changed: line 3 does not follow line 2", "Export it again."),
    "input-invalid": (422, "input: 'goal' is a required property", "Its fields: goal (required)."),
    "id-taken": (409, "the id 'letter' is taken", "Choose another id."),
    "key-exists": (409, "there is a key named 'ada'", "Choose another name, or revoke that key."),
    "key-in-use": (409, "a request with this key is still in progress", "Repeat the request in a moment."),
    "key-reused": (409, f"{EXECUTION_ID!r} was started under this key with another input", "Use a new key."),
    "last-admin": (409, "'root' is the only admin key", "Create another one first."),
    "login-not-offered": (404, "no identity provider is configured here", "You can also log in with an API key."),
    "media-type-refused": (
        415,
        "the body has the media type 'text/plain', but only JSON is accepted",
        "Send it as application/json.",
    ),
    "memory-key-invalid": (400, "'' is not a valid memory key", "A key has 1 to 500 printable characters."),
    "memory-full": (400, "the memory of user 'ada' is full", "Delete values first."),
    "memory-not-a-list": (422, "the value of 'likes' is not a list", "Use another key, or set the value."),
    "model-rate-limited": (429, "all keys of the provider are at their limit", "Retry later."),
    "model-override": (
        409,
        "'scripted' is set as the model of every agent, so 'openai:gpt-5' cannot be used",
        "Omit `model`.",
    ),
    "migration-refused": (409, "review: there is no node 'review'", "`checkOnly` lists all problems."),
    "name-invalid": (422, "'1/2' is not a valid secret name", "It has 1 to 100 letters, digits and underscores."),
    "no-conversation": (400, f"{EXECUTION_ID!r} does not belong to a conversation", "Start it with a `sessionId`."),
    "no-such-key": (404, "there is no key named 'ada'", "Existing keys: 'root'."),
    "no-such-login": (404, "there is no login '0badcafe0badcafe'", "GET /api/logins lists them."),
    "no-such-agent": (404, "there is no agent 'writer'", "Saved: editor."),
    "no-such-artifact": (
        404,
        "the execution has no artifact 'report.md'",
        "`artifacts` in the execution view lists its files.",
    ),
    "model-failed": (503, "the provider 'openai' cannot be reached", "Try again later."),
    "design-model-missing": (
        409,
        "only the scripted model is available, and it cannot design workflows",
        "Name a model.",
    ),
    "no-such-notice": (404, "there is no notice 'desk/exec-1'", "`GET /api/notifications` shows them."),
    "not-found": (404, "there is nothing at this address", "/api/docs lists every address."),
    "no-such-revision": (404, "/api/docs lists all addresses.", "It has 2, 1."),
    "no-such-row": (404, f"{EXECUTION_ID!r} has no row 99", "Its last revision is 12."),
    "no-such-schedule": (
        404,
        "there is no schedule 'nightly'",
        "GET /api/schedules lists the schedules that you may see.",
    ),
    "not-published": (404, "nothing is published at this address", "Ask for a new link."),
    "folder-invalid": (422, "'a//b' cannot be the path of a folder", "Write names separated by /: sales/mail."),
    "folder-exists": (409, "the folder 'sales' exists", "Choose another name."),
    "folder-not-empty": (409, "the folder 'sales' is not empty", "Move its workflows and folders first."),
    "unknown-folder": (
        404,
        "there is no folder 'sales'",
        "`pointsman folders list` shows yours.",
    ),
    "version-invalid": (422, "'' cannot be the name of a version", "Use 1 to 100 printable characters."),
    "version-name-taken": (409, "revision 3 already has the name 'Spring'", "Choose another name."),
    "publication-invalid": (422, "'*' is not an origin", "Write https://www.example.com."),
    "no-such-provider": (404, "no provider 'openai' is connected", "GET /api/models lists the providers."),
    "no-such-tool-connection": (404, "no tools are connected as 'wiki'", "GET /api/tool-connections lists them."),
    "tool-connection-in-settings": (
        409,
        "pointsman.toml configures the MCP server 'wiki', and has precedence",
        "Remove it there and restart the server, or choose another name.",
    ),
    "no-such-notification": (
        404,
        "no destination was added as 'desk'",
        "GET /api/notifications lists the destinations.",
    ),
    "notification-in-settings": (
        409,
        "pointsman.toml has the destination 'desk', and has precedence",
        "Change it there and restart the server, or choose another name.",
    ),
    "no-such-setting": (404, "there is no setting 'langauge'", "GET /api/settings lists the settings."),
    "setting-fixed": (
        409,
        "POINTSMAN_LANGUAGE has the setting 'language', and has precedence",
        "Remove it there and restart the server; then change it here.",
    ),
    "setting-invalid": (422, "the password is missing", "Enter the password of the user."),
    "notification-invalid": (422, "the address is missing", "Paste the address of the webhook."),
    "tool-connection-invalid": (422, "the key is missing", "Paste the key of the service."),
    "openapi-unreadable": (422, "this is not an OpenAPI 3.0 or 3.1 document", "Convert an older document first."),
    "no-such-secret": (404, "the store has no secret 'WEATHER'", "Existing secrets: 'MAIL'."),
    "no-such-tool": (404, "there is no tool 'abacus'", "GET /api/tools lists them."),
    "comment-invalid": (422, "the comment has no text", "Write at least one visible character."),
    "unknown-comment": (404, "there is no comment '000644b1'", "List the comments again."),
    "too-many-comments": (409, "workflow 'letter' has 1000 comments", "Delete comments that are settled."),
    "unknown-dataset": (404, "there is no dataset 'tickets'", "`pointsman datasets list` lists them."),
    "unknown-evaluation": (404, "'exec-1' is not an evaluation run", "`pointsman eval` starts one."),
    "dataset-invalid": (422, "line 2 is not a JSON object", "Each line is one JSON object."),
    "scorer-invalid": (422, "an evaluation needs a scorer", "`match` compares the output with what is expected."),
    "unknown-template": (404, "there is no template 'abacus'", "GET /api/templates lists them."),
    "no-such-gate": (404, "there is no open gate 'review'", "`GET` the execution: `waiting` lists them."),
    "no-such-trigger": (404, "'letter' has no enabled webhook 'order'", "GET /api/webhooks lists them."),
    "not-allowed": (
        403,
        "'ada' is a viewer and may not run workflows",
        "Ask an admin for the role operator or a higher one.",
    ),
    "not-an-approver": (403, "'ada' is not an approver of 'review'", "Approvers: members of server."),
    "not-delegable": (403, "anyone may answer this gate", "There is no right to delegate."),
    "not-signed-in": (
        401,
        "the request has no key",
        "Send `Authorization: Bearer KEY`; `pointsman keys add` creates one.",
    ),
    "hidden-by-redaction": (
        403,
        f"{EXECUTION_ID!r} has the redaction level 'minimal'",
        "Use `pointsman export` on the machine of the store.",
    ),
    "not-steerable": (409, f"{EXECUTION_ID!r} has ended", "Fork it instead."),
    "no-such-memory": (
        404,
        "memory has no value for the key 'likes'",
        "It was deleted, has expired, or never existed.",
    ),
    "operation-refused": (422, "operation 1 (change_node): there is no node 'wirte'", "Did you mean 'write'?"),
    "usage-unknown": (
        400,
        "usage has no dimension 'colour:red'",
        "Write it as model:gpt-5; dimensions: day, workflow.",
    ),
    "period-invalid": (400, "'yesterday' is not a date", "Write it as 2026-11-21."),
    "concurrency-limit-reached": (
        409,
        "'letter' has reached its limit of 1 execution at the same time",
        "Wait until an execution ends.",
    ),
    "provider-in-settings": (
        409,
        "the variable OPENAI_API_KEY configures the provider 'openai', and has precedence",
        "Remove it there and restart the server, or connect another provider.",
    ),
    "provider-invalid": (422, "the key is missing", "Paste an API key of the provider."),
    "position-invalid": (
        400,
        "'17-0' is not a position in a journal",
        "Positions look like `17.0`.",
    ),
    "request-invalid": (422, "query/limit: Input should be less than or equal to 200", "See /api/docs."),
    "revision-moved": (
        409,
        "'news' has been changed: its latest revision is 3",
        "Read it again, and apply your change to that revision.",
    ),
    "schedule-exists": (409, "the schedule 'nightly' already exists", "Delete it, or choose another id."),
    "schedule-invalid": (422, "'a/b' is not a valid schedule id", "Letters, digits and `. _ -`, at most 200."),
    "secret-invalid": (422, "the value of 'WEATHER' has 3 characters", "A secret has 8 to 60000 characters."),
    "store-copy-unsupported": (409, "a store in memory cannot be backed up", "Use a store in a file or in PostgreSQL."),
    "store-full": (507, "the store has no room left", "Free disk space, or set `retention` and run `pointsman gc`."),
    "store-failed": (503, "the store cannot be reached", "Try again; nothing was stored."),
    "session-busy": (409, f"the conversation 's1' has a turn in progress: {EXECUTION_ID}", "Wait until it ends."),
    "tool-not-callable": (
        409,
        "'pay' cannot be run on its own: a person must approve each of its calls",
        "Call it in a workflow.",
    ),
    "tool-timeout": (
        502,
        "the tool 'web_search' did not answer",
        "Retry the execution: it continues from the failed step.",
    ),
    "too-many-requests": (429, "the rate limit is exceeded", "Wait for the seconds in `Retry-After`."),
    "trigger-stopped": (
        403,
        "the owner 'ada' may no longer execute the workflow 'letter'",
        "Restore the owner's role and the sharing of the workflow.",
    ),
    "unknown-execution": (404, f"there is no execution {EXECUTION_ID!r} here", SHOWN),
    "unknown-memory": (404, "'team' is not a memory scope", "Scopes: execution, session, user, workflow, shared."),
    "unknown-session": (
        404,
        "there is no session 'ses_0badcafe'",
        "`sessionId` in an execution view is the id of its session.",
    ),
    "unknown-workflow": (
        404,
        "there is no workflow 'news'",
        "GET /api/workflows lists the workflows that you may see.",
    ),
    "vault-key-invalid": (503, "other users can read the key file 'vault.key'", "Run: chmod 600 vault.key"),
    "vault-locked": (503, "no key is configured for the secrets of the store", "Set it in POINTSMAN_VAULT_KEYS."),
    "webhook-refused": (404, "no webhook accepts this call", "Check the path and the secret."),
    "webhook-taken": (409, "the workflow 'billing' already has the path 'orders'", "Choose another path."),
    "partial-run-invalid": (422, "there is no node 'wirte' to mock", "Nodes that run: write, review, send."),
    "workflow-disabled": (409, "'news' is disabled", "Set `enabled: true`."),
    "workflow-exists": (
        409,
        "the workflow 'my-research' already exists",
        "Choose another id for the clone, or delete that workflow.",
    ),
    "messages-invalid": (
        400,
        "the request contains no messages",
        "Send at least one message; the last one goes to the workflow.",
    ),
    "not-text": (
        400,
        "'letter' does not accept a text as its input",
        "Send an object: the workflow does not describe its fields.",
    ),
    "command-invalid": (400, "the command contains no task", "Write, for example: Write a proposal for …"),
    "sharing-invalid": (
        422,
        "the audience of 'letter' is `groups`, but no group is named",
        "Name groups with the audience `groups`, and only with it.",
    ),
    "host-invalid": (400, "the header `Host` is missing", "Send it once: the name or address of the server."),
    "origin-refused": (
        403,
        "pages of 'elsewhere' are not allowed to change anything on this server",
        "Send the request from a program.",
    ),
    "request-too-slow": (408, "the request did not arrive: headers within 10 s", "Send the request again."),
    "address-too-long": (414, "the address has more than 24576 bytes", "Send long values in the body."),
    "head-too-large": (431, "the headers have more than 32768 bytes", "Send less."),
    "too-many-connections": (503, "the server has reached its limit of connections", "Try again later."),
    "workflow-invalid": (
        422,
        "an edge of node 'write' leads to 'sned', which does not exist",
        "Known nodes: write, send.",
    ),
    "wrong-status": (409, f"{EXECUTION_ID!r} is completed: it cannot be paused", "Start another one."),
}
"""Status, detail and hint by error code."""

USUAL: Final[Mapping[int, str]] = {
    400: "body-invalid",
    401: "not-signed-in",
    403: "not-allowed",
    404: "not-found",
    409: "wrong-status",
    410: "answer-link-expired",
    413: "body-too-large",
    415: "media-type-refused",
    422: "request-invalid",
    429: "too-many-requests",
    502: "tool-timeout",
    503: "store-failed",
    507: "store-full",
}
"""Error code of a status for operations that name only the status."""


def sample_of(code: str) -> JsonObject:
    """Return an example of a problem document with the code."""
    status, detail, hint = SAMPLES[code]
    problems: list[FieldProblem] = []
    if code == "request-invalid":
        problems = [{"code": "less_than_equal", "pointer": "query/limit", "message": detail.partition(": ")[2]}]
    return json_of(problem_document(HTTPStatus(status), code, detail, hint=hint, problems=problems))


USAGE: UsageView = {
    "inputTokens": 812,
    "outputTokens": 240,
    "cacheReadTokens": 0,
    "cacheWriteTokens": 0,
    "costUsd": 0.0021,
    "modelCalls": 2,
    "toolCalls": 0,
}
GATE: GateView = {
    "gateId": "review",
    "nodeId": "review",
    "message": "Send it?",
    "options": [{"value": "approve"}, {"value": "again"}],
    "form": None,
    "shown": None,
    "editable": [],
    "values": {},
    "digest": "0f2a9c3b7d1e4a5f6b8c9d0e1f2a3b4c",
    "openedAt": 1_763_700_000.0,
    "deadline": None,
    "nodeName": None,
    "messages": None,
    "approvers": None,
    "about": "",
    "step": "review",
    "item": None,
    "round": None,
    "visit": 1,
    "level": 0,
    "votes": [],
    "delegated": {},
}
VERSION: NamedVersionView = {
    "revision": 1,
    "name": "Spring mailing",
    "note": "With the new greeting.",
    "namedAt": 1_763_700_000.0,
    "namedBy": "ada",
}
WORKFLOW: WorkflowEntryView = {
    "id": "letter",
    "revision": 2,
    "name": "Letter",
    "version": "1.1.0",
    "dialect": "native",
    "builtIn": False,
    "createdAt": 1_763_700_000.0,
    "author": "ada",
    "digest": "9f86d081884c7d65",
    "enabled": True,
    "description": "Writes a letter, and asks for approval before it is sent.",
    "names": None,
    "tags": ["mail"],
    "published": VERSION,
    "label": None,
    "folder": "sales/mail",
}
SHOWN_ENTRY: ExecutionEntry = {
    "executionId": EXECUTION_ID,
    "workflowId": "letter",
    "revision": 2,
    "status": "waiting",
    "waitingFor": [],
    "startedAt": 1_763_700_000.0,
    "startedBy": "ada",
    "updatedAt": 1_763_700_004.0,
    "parent": None,
    "sessionId": None,
    "scripted": False,
}
ENTRY: JsonObject = json_of(SHOWN_ENTRY)


example(ExecutionPage, {"executions": [SHOWN_ENTRY], "next": None})


example(
    EventPage,
    {
        "events": [{"seq": 3, "n": 0, "at": 1_763_700_003.0, "kind": "step_succeeded"}],
        "last": "3.0",
        "status": "waiting",
    },
)
EXECUTION: ExecutionView = {
    "executionId": EXECUTION_ID,
    "workflowId": "letter",
    "version": "1.1.0",
    "status": "waiting",
    "trial": None,
    "pausedBefore": None,
    "phase": None,
    "compensation": None,
    "model": None,
    "observability": "standard",
    "seq": 4,
    "input": {"goal": "tides"},
    "output": None,
    "scripted": False,
    "currentNodes": ["review"],
    "state": {"goal": "tides", "text": "Dear all, …"},
    "path": ["write"],
    "steps": 2,
    "waiting": [GATE],
    "awaiting": [],
    "waitingFor": [],
    "timers": [],
    "errors": [],
    "answers": [],
    "progress": [],
    "warnings": [],
    "usage": USAGE,
    "sessionId": None,
    "trigger": None,
    "startedAt": 1_763_700_000.0,
    "durationMs": 4012,
}
example(ExecutionView, EXECUTION)
example(
    InboxPage,
    {
        "gates": [
            {
                "executionId": EXECUTION_ID,
                "inside": None,
                "workflowId": "letter",
                "gateId": "review",
                "nodeId": "review",
                "nodeName": None,
                "message": "Send it?",
                "messages": None,
                "about": "",
                "digest": "0f2a9c3b7d1e4a5f6b8c9d0e1f2a3b4c",
                "scripted": False,
                "item": None,
                "round": None,
                "openedAt": 1_763_700_004.0,
                "deadline": None,
                "users": [],
                "groups": ["desk"],
                "cursor": f'[1763700004.0,"{EXECUTION_ID}","review"]',
            }
        ],
        "next": None,
    },
)
example(
    DryRunView,
    {
        "dryRun": True,
        "workflowId": "letter",
        "status": "completed",
        "output": {"letter": "…"},
        "path": ["write", "review", "send"],
        "steps": 3,
        "waits": [],
        "calls": [
            {
                "nodeId": "write",
                "kind": "model",
                "name": "scripted",
                "calls": 1,
                "callsMax": 1,
                "inputTokens": 812,
                "outputTokens": 240,
                "costUsd": 0.0,
                "costMaxUsd": 0.0,
                "tools": [],
            }
        ],
        "cost": {"lowUsd": 0.0, "highUsd": 0.0, "unpriced": []},
        "assumptions": {"charsPerToken": 4, "outputTokensPerAnswer": 500},
        "errors": [],
        "warnings": [],
    },
)
example(SignalledExecution, {**EXECUTION, "outcome": "delivered", "became": "taken"})
example(StartedExecution, {"executionId": EXECUTION_ID, "status": "running", "scripted": False, "warnings": []})
