"""Documented responses of operations: the successful one, and the errors that callers should expect, with examples.

    responses=answers(ExecutionView, "unknown-execution", "wrong-status", body=True)

An error is given by its code, which determines the status, or by a status alone. Errors of every operation are added:
missing key, missing role, invalid parameters, too many requests; with `body` also invalid JSON, too large, wrong type.
`openapi_document` removes errors that an operation without parameters or JSON body cannot return.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from pointsman.server.problems import MEDIA_TYPE, FieldProblem, ProblemDocument, problem_document
from pointsman.server.schemas.views import reference_to
from pointsman.values import Json, JsonObject, json_of

Described: TypeAlias = dict[int | str, dict[str, Any]]

CODE: Final = re.compile(r"`([a-z0-9-]+)`")
_ANYBODY: Final = (403, 422)
"""Wrong host or origin (403), invalid parameters (422)."""
_EVERYWHERE: Final = (*_ANYBODY, 401, 429)
"""Also missing key (401), too many requests (429)."""
_BAD_BODY: Final = (400, 413, 415)


def answers(view: type[Any], *errors: int | str, status: int = 200, body: bool = False, asks: bool = True) -> Described:
    """Return the responses of an operation. `view`: the type of its answer. `body`: it reads a JSON body.
    `asks`: it requires a key."""
    return answer(view, HTTPStatus(status).phrase, status=status) | refusals(*errors, body=body, asks=asks)


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
    for one in errors:
        if isinstance(one, str):
            codes[SAMPLES[one][0]].append(one)
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
    return {status: {"description": HTTPStatus(status).phrase, "content": content}}


def bytes_answer(media_type: str = "application/octet-stream", *, status: int = 200) -> Described:
    """Return a binary response."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}, "example": "(the file)"}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content}}


def raw_body(content: Mapping[str, tuple[JsonObject, Json]]) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation that parses its body itself: by media type a schema and an example."""
    described = {media: {"schema": schema, "example": example} for media, (schema, example) in content.items()}
    return {"requestBody": {"required": True, "content": described}}


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    named = ", ".join(f"`{code}`" for code in sorted(codes))
    return {
        "description": f"{HTTPStatus(status).phrase}: {named}",
        "content": {
            MEDIA_TYPE: {
                "schema": reference_to(ProblemDocument),
                "examples": {code: {"value": sample_of(code)} for code in sorted(codes)},
            }
        },
    }


EXECUTION_ID: Final = "exec-06f0c2k8s3v7q9y1m4t5w6x8z0"
SHOWN: Final = "`GET /api/workflows/executions` shows them."

SAMPLES: Final[Mapping[str, tuple[int, str, str]]] = {
    "action-not-offered": (422, "the gate offers no 'ship'", "It offers approve, again."),
    "agent-invalid": (400, "'a/b' is no name of an agent", "At most 100 letters, digits, `. _ -`."),
    "agent-taken": (409, "the name 'writer' is taken", "Take another name."),
    "answer-differs": (409, "'review' was answered differently under this key", "Use a new key for a new answer."),
    "answer-invalid": (422, "'reprt' cannot be edited at this gate", "Did you mean 'report'? Editable: report."),
    "body-invalid": (400, "the body is not JSON: Expecting value at character 0", "Send JSON."),
    "body-too-large": (413, "the body has more than 64000000 bytes", "Send where the data are, instead of the data."),
    "built-in-workflow": (
        409,
        "'builtin:iterate' is built in: it is read-only",
        "Clone it, and change that: pointsman workflows clone builtin:iterate my-iterate",
    ),
    "cursor-invalid": (400, "'next' is no place in an inbox", "Use the `cursor` of an entry."),
    "definition-gone": (503, "the store has no definition af7cd274bdd7", "It was deleted, or this is another store."),
    "design-failed": (400, "in 2 rounds no change of 'letter' came of it", "Say it in other words."),
    "document-too-expensive": (
        422,
        "the document needs more than 5 s of processor time",
        "Make the document smaller or simpler.",
    ),
    "edit-refused": (
        422,
        "there is no open branch 'each[1.0]'",
        "Reading it names the open ones.",
    ),
    "execution-exists": (409, f"there is an execution {EXECUTION_ID!r} already", "Import it as a copy."),
    "execution-unfinished": (409, f"{EXECUTION_ID!r} is waiting: only what has ended can be deleted", "Cancel it."),
    "field-not-patched": (422, "'nodes' is not changed by a patch", "PUT the document."),
    "files-too-large": (413, "the files have 30000000 bytes", "At most 20000000 together."),
    "gate-changed": (409, "what the gate of 'review' shows has changed since it was read", "Look at the gate again."),
    "gate-closed": (409, "the gate 'review' was answered with 'approve' by 'ada'", "Read the execution again."),
    "gate-unclear": (409, "'review' has two open gates", "Name one: review[1.0], review[1.1]."),
    "import-refused": (400, "the export was changed: line 3 does not follow line 2", "Export it again."),
    "input-invalid": (422, "input: 'goal' is a required property", "It takes goal (required)."),
    "id-taken": (409, "the id 'letter' is taken", "Choose another id."),
    "key-exists": (409, "there is a key named 'ada'", "Name it differently, or revoke that one."),
    "key-in-use": (409, "what was asked for under this key has no answer yet", "Ask again in a moment."),
    "key-reused": (409, f"{EXECUTION_ID!r} was started under this key with another input", "Use a new key."),
    "last-admin": (409, "'root' is the only key of an admin", "Make another one first."),
    "login-not-offered": (404, "no identity provider is configured here", "A key opens the server too."),
    "media-type-refused": (415, "the body is 'text/plain', and JSON is read here", "Send it as application/json."),
    "memory-key-invalid": (400, "'' cannot be a key of memory", "It has 1 to 500 printable characters."),
    "memory-full": (400, "the memory of user 'ada' is full", "Forget something first."),
    "memory-not-a-list": (422, "the value of 'likes' is not a list", "Use another key, or set the value."),
    "model-rate-limited": (429, "all keys are at their limit", "Retry later."),
    "model-fixed": (409, "'scripted' answers every agent here, so 'openai:gpt-5' cannot", "Leave `model` out."),
    "move-refused": (409, "review: there is no node 'review'", "Ask with `checkOnly` for all of it."),
    "name-invalid": (422, "'1/2' cannot be the name of a secret", "It has 1 to 100 letters, digits and underscores."),
    "no-conversation": (400, f"{EXECUTION_ID!r} is no turn of a conversation", "Start it with a `sessionId`."),
    "no-such-key": (404, "there is no key named 'ada'", "There is 'root'."),
    "no-such-login": (404, "there is no login '0badcafe0badcafe'", "GET /api/logins lists them."),
    "no-such-agent": (404, "there is no agent 'writer'", "Saved: editor."),
    "no-such-artifact": (404, "the execution keeps no file 'report.md'", "`artifacts` lists its files."),
    "model-failed": (503, "the provider 'openai' cannot be reached", "Try again later."),
    "no-designer": (409, "only the scripted model is here, and it designs nothing by itself", "Name a model."),
    "no-such-notice": (404, "there is no notice 'desk/exec-1'", "`GET /api/notifications` shows them."),
    "no-such-page": (404, "there is nothing at this address", "/api/docs lists every address."),
    "no-such-revision": (404, "'news' has no revision 7", "It has 2, 1."),
    "no-such-row": (404, f"{EXECUTION_ID!r} has no row 99", "Its last one is 12."),
    "no-such-schedule": (404, "there is no schedule 'nightly'", "GET /api/schedules lists those you may see."),
    "no-such-secret": (404, "the store keeps no secret named 'WEATHER'", "There is 'MAIL'."),
    "no-such-tool": (404, "there is no tool 'abacus'", "GET /api/tools lists them."),
    "no-such-step": (404, "there is no open gate 'review'", "`GET` the execution: `waiting` lists them."),
    "no-such-trigger": (404, "'letter' has no webhook 'order' in effect", "GET /api/webhooks lists them."),
    "not-allowed": (403, "'ada' is a viewer and may not run workflows", "It takes an operator, or more."),
    "not-an-approver": (403, "'ada' is not asked at 'review'", "It asks members of server."),
    "not-delegable": (403, "anyone may answer this gate", "There is nothing to pass on."),
    "not-signed-in": (401, "no key was shown", "Send `Authorization: Bearer KEY`; `pointsman keys add` makes one."),
    "not-told": (403, f"{EXECUTION_ID!r} is observed at 'minimal'", "`pointsman export` does it."),
    "not-steerable": (409, f"{EXECUTION_ID!r} has ended", "Fork it instead."),
    "nothing-remembered": (404, "nothing is remembered as 'likes'", "It was forgotten, expired, or never there."),
    "operation-refused": (422, "operation 1 (change_node): there is no node 'wirte'", "Did you mean 'write'?"),
    "usage-unknown": (400, "usage is not told apart by 'colour:red'", "Say it as model:gpt-5; known: day, workflow."),
    "period-invalid": (400, "'yesterday' is no day", "Say it as 2026-11-21."),
    "place-taken": (409, "'letter' runs once already, and may not run more often at once", "Wait for an end."),
    "place-invalid": (400, "'17-0' is no place in a journal", "It is `seq.n`, as in `17.0`."),
    "request-invalid": (422, "query/limit: Input should be less than or equal to 200", "See /api/docs."),
    "revision-moved": (409, "'news' is at revision 3 now", "Read it again, and change that."),
    "schedule-exists": (409, "there is a schedule 'nightly' already", "Delete it, or take another id."),
    "schedule-invalid": (422, "'a/b' is no name of a schedule", "Letters, digits and `. _ -`, at most 200."),
    "secret-invalid": (422, "the value of 'WEATHER' has 3 characters", "It has 8 to 60000 characters."),
    "store-uncopyable": (409, "a store in memory cannot be copied as a whole", "Keep it in a file, or in PostgreSQL."),
    "store-full": (507, "the store has no room left", "Free disk space, or delete data by `retention`."),
    "store-failed": (503, "the store cannot be reached", "Try again; nothing was written."),
    "session-busy": (409, f"in the conversation 's1' a turn is under way: {EXECUTION_ID}", "Wait until it ends."),
    "tool-not-tried": (
        409,
        "'pay' is not tried: somebody must approve each of its calls",
        "Let a workflow call it.",
    ),
    "tool-timeout": (502, "the tool 'web_search' did not answer", "Retry it: it goes on where it failed."),
    "too-many-requests": (429, "the limit of requests is reached", "Wait as long as `Retry-After` says."),
    "trigger-stopped": (
        403,
        "its owner 'ada' may not execute the workflow 'letter' any more",
        "Give the owner the role and the sharing again.",
    ),
    "unknown-execution": (404, f"there is no execution {EXECUTION_ID!r} here", SHOWN),
    "unknown-memory": (404, "'team' is no scope of memory", "It is one of execution, session, user, workflow, shared."),
    "unknown-session": (404, "there is no session 'ses_0badcafe'", "`sessionId` of an execution names one."),
    "unknown-workflow": (404, "there is no workflow 'news'", "GET /api/workflows lists those you may see."),
    "vault-key-invalid": (503, "others may read the key file 'vault.key'", "chmod 600 vault.key"),
    "vault-locked": (503, "there is no key for the secrets of the store", "Give it in POINTSMAN_VAULT_KEYS."),
    "webhook-refused": (404, "no webhook of this path takes this call", "Check path and secret."),
    "webhook-taken": (409, "the path 'orders' belongs to 'billing'", "Take another path."),
    "trial-unfit": (422, "there is no node 'wirte' to be pinned", "Nodes that run: write, review, send."),
    "workflow-disabled": (409, "'news' is disabled", "Set `enabled: true`."),
    "workflow-exists": (409, "there is a workflow 'my-research'", "Name the clone differently, or delete that one."),
    "messages-invalid": (400, "there are no messages", "The last message is what the workflow is told."),
    "not-text": (400, "'letter' takes more than a text", "Give an object: the workflow says nothing of its fields."),
    "command-unclear": (400, "the command says nothing to do", "Write, for example: Write a proposal for …"),
    "sharing-invalid": (
        422,
        "'letter' is shared with groups, and 0 groups are named",
        "Name groups with the audience `groups`, and with no other.",
    ),
    "host-invalid": (400, "the header `Host` is missing", "Send it once: the name or address of the server."),
    "origin-refused": (403, "a page of 'elsewhere' may not change anything here", "Call it from a program."),
    "request-too-slow": (408, "the request did not arrive: headers within 10 s", "Send the request again."),
    "address-too-long": (414, "the address has more than 24576 bytes", "Send long values in the body."),
    "head-too-large": (431, "the headers have more than 32768 bytes", "Send less."),
    "too-many-connections": (503, "the server has as many connections as it may have", "Try again later."),
    "workflow-invalid": (422, "node 'write' leads to 'sned', which does not exist", "Known nodes: write, send."),
    "wrong-status": (409, f"{EXECUTION_ID!r} is completed: it cannot be paused", "Start another one."),
}
"""Status, detail and hint by error code."""

USUAL: Final[Mapping[int, str]] = {
    400: "body-invalid",
    401: "not-signed-in",
    403: "not-allowed",
    404: "no-such-page",
    409: "wrong-status",
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
