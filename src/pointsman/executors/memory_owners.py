"""Owners of memories, and how keys are stored.

    execution │ session │ user │ workflow │ shared        the owner of values: no owner reaches those of another
        └─ namespace ─ key                                `notes/a` is key `a` of namespace `notes`

A key may contain any printable character: one with a slash is stored with an empty namespace (`/a/b`), and slashes in
names of namespaces are escaped, so that no key of one namespace equals one of another.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.executors.failures import WorkRefused
from pointsman.redaction import head
from pointsman.values import Json

SCOPES: Final = ("execution", "session", "user", "workflow", "shared")
KEY_CHARS_MAX: Final = 500


class Owner(Struct, frozen=True):
    """The owner of a memory: its scope and name."""

    scope: str
    name: str


def key_in(namespace: str, key: str) -> str:
    """Return a key as it is stored."""
    return f"{escaped(namespace)}/{key}" if namespace or "/" in key else key


def prefix_of(namespace: str) -> str:
    """Return the prefix of a namespace's keys; without a namespace, of all the owner's keys."""
    return f"{escaped(namespace)}/" if namespace else ""


def names_of(stored: str) -> tuple[str, str]:
    """Return the namespace and key of a stored key."""
    namespace, slash, key = stored.partition("/")
    return (namespace.replace("%2F", "/").replace("%25", "%"), key) if slash else ("", stored)


def escaped(namespace: str) -> str:
    return namespace.replace("%", "%25").replace("/", "%2F")


def check_name(what: str, name: str) -> None:
    """Raises `WorkRefused` for an invalid key or namespace."""
    if 0 < len(name) <= KEY_CHARS_MAX and all(letter.isprintable() for letter in name):
        return
    raise WorkRefused(
        Failure(
            code="memory-key-invalid",
            message=f"{head(name, 60)!r} cannot be {what} of memory",
            hint=f"It has 1 to {KEY_CHARS_MAX} printable characters.",
        )
    )


def owner_of(scope: str, namespace: str, *, execution: str, session: Json, user: Json, workflow: Json) -> Owner:
    """Return the owner of a node's memory. Raises `WorkRefused` if there is none."""
    if scope == "long_term":
        scope = "shared" if namespace else "workflow"
    # An execution outside any session is a session of its own: no other execution may read its memory.
    owners: dict[str, Json] = {
        "execution": execution,
        "session": session or execution,
        "user": user,
        "workflow": workflow,
        "shared": namespace,
    }
    name = owners.get(scope)
    if not isinstance(name, str) or not name:
        raise WorkRefused(_nobody(scope))
    return Owner(scope, name)


def _nobody(scope: str) -> Failure:
    if scope == "user":
        hint = "Say who starts it: `pointsman run --as NAME`, or `start(…, by=NAME)`."
        return Failure(code="memory-no-owner", message="nobody is known to have started the execution", hint=hint)
    if scope == "shared":
        message, hint = "a shared memory needs a name", "Set `namespace`."
        return Failure(code="memory-no-owner", message=message, hint=hint)
    return Failure(code="config-wrong", message=f"there is no memory scope {scope!r}", hint=f"Use {', '.join(SCOPES)}.")
