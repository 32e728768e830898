"""Secrets in calls: inserted at the last moment where the document names them, and masked in what comes back.

    document: {key: "Bearer {secret.X}"} ─▶ journal: as written ─▶ the call: the secret ─▶ its answer: *** ─▶ journal
                                                                └─ is it allowed for this workflow, tool and host?

A handle counts only where the document itself has one and the input still equals the document there. Handles in texts
that data, models or people supply stay plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import NamedTuple, cast

from msgspec.structs import replace

from pointsman.engine.failures import Failure, failure_by
from pointsman.errors import OperatorError, Outage
from pointsman.executors.failures import WorkRefused
from pointsman.expressions.templates import SecretText
from pointsman.ports import Secrets, TextCallback
from pointsman.redaction import CHARS_MIN, NOTHING, Redaction, Stream, redaction_of
from pointsman.tools.egress.addresses import SecretHosts, refused
from pointsman.tools.tool import rephrased
from pointsman.values import Json, JsonObject


class Revealed(NamedTuple):
    """A tree with its secrets inserted, and the hosts to which each secret may go."""

    value: JsonObject
    guards: tuple[SecretHosts, ...] = ()

    def masks(self, secrets: Secrets) -> Masks:
        """Return masks for these secrets and all other known ones."""
        return Masks(secrets.redaction, redaction_of(frozenset(guard.value for guard in self.guards)))


class Masks(NamedTuple):
    """Masks secrets in data from outside."""

    known: Redaction
    used: Redaction = NOTHING
    """Also those that are too short to be masked everywhere."""

    def json(self, value: Json) -> Json:
        return self.used.json(self.known.json(value))

    def text(self, text: str) -> str:
        return self.used.text(self.known.text(text))

    def data(self, data: bytes) -> bytes:
        return self.used.data(self.known.data(data))

    def failure(self, failure: Failure) -> Failure:
        return masked_failure(masked_failure(failure, self.known), self.used)


async def revealed(
    tree: JsonObject,
    texts: Sequence[SecretText],
    written: Json,
    secrets: Secrets,
    *,
    revision: str,
    tool: str | None = None,
) -> Revealed:
    """Return the tree with its secrets inserted. `written`: the tree as in the document, with templates; `revision`:
    the saved revision that runs; `tool`: the tool that receives the tree.

    Raises `WorkRefused`: `secret-missing`, `secret-refused`, `secret-invalid`, or the reason why a secret cannot be
    read.
    """
    if not texts:
        return Revealed(tree)
    await secrets.refresh()
    value = deepcopy(tree)
    # A person changed a text that differs from the document by now: their text is plain text.
    unchanged = [
        text
        for text in texts
        if (template := _at(written, text.pointer)) is not None and _at(value, text.pointer) == template
    ]
    names = dict.fromkeys(name for text in unchanged for name, hidden in text.pieces if hidden)
    try:
        guards = {name: await _guard(name, secrets, revision, tool) for name in names}
    except (Outage, WorkRefused):
        raise
    except OperatorError as why:
        raise WorkRefused(failure_by(why)) from why
    for text in unchanged:
        _put(value, text.pointer, text.revealed(lambda name: guards[name].value))
    return Revealed(value, tuple(guards.values()))


async def _guard(name: str, secrets: Secrets, revision: str, tool: str | None) -> SecretHosts:
    """Return a secret that this document may use. Raises `OperatorError`, `WorkRefused`."""
    value = secrets.secret(name)
    if value is None:
        hint = f"`pointsman secrets set {name}`, or set POINTSMAN_SECRET_{name}."
        message = f"the secret {name!r} is not set"
        raise WorkRefused(Failure(code="secret-missing", message=message, hint=hint, needs=f"secret:{name}"))
    if len(value) < CHARS_MIN:
        message = f"the secret {name!r} has {len(value)} characters: so short a value could not be redacted from texts"
        hint = f"Use {CHARS_MIN} or more; 16 are better."
        raise WorkRefused(Failure(code="secret-invalid", message=message, hint=hint))
    if why := await secrets.refusal(name, revision):
        hint = (
            f"`pointsman secrets list` shows where it may be used, `pointsman secrets allow {name}` changes "
            "it. Both require the role admin."
        )
        raise WorkRefused(Failure(code="secret-refused", message=why, hint=hint))
    rule = secrets.rule(name)
    if tool is not None and not any(fnmatchcase(tool, pattern) for pattern in rule.tools):
        raise refused(name, f"to the tool {tool!r}", f"--tool {tool}")
    return SecretHosts(name=name, value=value, hosts=rule.hosts)


def masked_failure(failure: Failure, redaction: Redaction) -> Failure:
    """Return the failure with secrets masked."""
    if not redaction:
        return failure
    clean = replace(
        failure,
        message=redaction.text(failure.message),
        hint=redaction.text(failure.hint),
        details=cast("JsonObject | None", redaction.json(failure.details)),
    )
    return rephrased(failure, clean)


class MaskedListener:
    """Passes on streamed text with secrets masked, also a secret that arrives in two pieces."""

    def __init__(self, callback: TextCallback, redaction: Redaction) -> None:
        self._on_text = callback
        self._redaction = redaction
        self._streams: dict[type[str], Stream] = {}

    def __call__(self, text: str, /) -> None:
        kind = type(text)  # Thoughts are a separate text.
        stream = self._streams.get(kind)
        if stream is None:
            stream = self._streams[kind] = Stream(self._redaction)
        if shown := stream.feed(text):
            self._on_text(kind(shown))

    def end(self) -> None:
        """Pass on the rest; the text is complete."""
        for kind, stream in self._streams.items():
            if shown := stream.end():
                self._on_text(kind(shown))


def _at(tree: Json, pointer: Sequence[str | int]) -> str | None:
    """Return the text at a pointer; None: the place does not exist or holds no text."""
    for part in pointer:
        if isinstance(tree, dict) and isinstance(part, str):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree if isinstance(tree, str) else None


def _put(tree: Json, pointer: Sequence[str | int], text: str) -> None:
    *parents, last = pointer
    for part in parents:
        tree = cast("dict[str | int, Json]", tree)[part]
    cast("dict[str | int, Json]", tree)[last] = text
