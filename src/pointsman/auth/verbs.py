"""Verbs: the actions of the domains, each with its role check and its audit entry in one place.

    face ── app.acting_as(caller, via=…) ──▶ Session ──▶ ExecutionVerbs.cancel ──▶ the domain
                                                          │ 0. argument types   `CallInvalid`: nothing was done
                                                          │ 1. role             refused: an entry, `NotAllowed`
                                                          │ 2. audit entry      before the change
                                                          │ 3. the body         rights on the object, then the change
                                                          └ 4. audit outcome    error code, or ids of created things

A domain has one class of verbs, derived from `Verbs`. A face (HTTP, MCP, CLI, tools of agents) only calls verbs: it
checks no right and writes no audit entry of its own (HTTP and MCP check the role of the verb once more before they read
body or arguments). To add a verb:

    class ExecutionVerbs(Verbs):
        @verb("operator", "cancel executions", target=("execution",))
        async def cancel(self, execution: str, *, reason: str = "") -> Execution:
            \"""Cancel an execution for good.\"""
            await must_control(self.app, self.caller, execution)
            …

- The role and the text of the error stand in `@verb`, nowhere else. The HTTP operation names the verb
  (`router.post(path, verb=ExecutionVerbs.cancel)`) and derives its role check and its documented role from it.
- The rights on the object (`auth.policy`, `auth.sharing`) are checked in the body, before anything is changed.
- `target` names the arguments that identify the changed thing in the audit entry. Other arguments may be secret and
  are never recorded.
- `made` returns the ids of what the verb created, from its result. `self.tries(id=…)` names them before it is checked
  whether they may be created, so that the entry of a refused call contains them too.
- A verb that only reads has `audit=False`. One that takes data out of the store (an export, a backup) is audited, with
  `exports=True`: on a store that cannot be written it goes to the log instead of the audit log.
- A verb that is sometimes only a check names the argument that decides:
  `when="apply"`, `unless="check_only"`.
- A verb never calls another verb, which would write a second entry: both call a function of the domain.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from pointsman.arguments import checks_arguments
from pointsman.auth.audit import AUDIT, TARGET_CHARS_MAX
from pointsman.auth.callers import Caller, NotAllowed, Role
from pointsman.context import AppContext
from pointsman.errors import OperatorError, PointsmanError
from pointsman.values import JsonObject

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", bound="Verbs")

LOG: Final = logging.getLogger("pointsman.access")
TOOL_NAMES: Final = ("workflow", "id", "executionId", "sessionId", "gate", "revision")
"""Arguments of tools that identify what is changed. Other arguments may be secret and are never recorded."""
_RULE: Final = "__verb_rule__"


@dataclass(frozen=True, slots=True)
class Acting:
    """One caller who uses an app, and the operation of the face through which the caller does."""

    app: AppContext
    caller: Caller
    via: str = ""
    """The operation in audit entries: `PUT /api/workflows/{id}`, `pointsman keys add`, `mcp save_workflow`. Empty: the
    name of the verb."""
    target: str = ""
    """The target in audit entries, as the face names it (`eid=exec-1`). Empty: the arguments that the verb names."""
    origin: str = ""
    """The network address of the caller, or the execution whose agent acts. Empty: unknown."""
    entries: list[str] = field(default_factory=list[str], compare=False)
    """The ids of the audit entries that verbs wrote for this caller."""
    tried: dict[str, object] = field(default_factory=dict[str, object], compare=False)
    """The ids of what the running verb is about to create."""

    async def record_refusal(self, rule: VerbRule, code: str) -> None:
        """Write the audit entry of a verb that was refused before it was called, for example for an invalid body.

        Does nothing for a verb without audit entries, nor if a verb has written an entry."""
        if rule.audit and not self.entries:
            await _refuse(self, rule, self.target, code)


def is_of_program(verbs: object) -> bool:
    """Return whether verbs are used by a program, not by a face."""
    return isinstance(verbs, Verbs) and not verbs.acting.via


class Verbs:
    """Base of the classes of verbs. Methods called by programs check the types of their arguments, before role and
    audit entry; faces, which name their operation, pass arguments that they have read."""

    def __init_subclass__(cls) -> None:
        checks_arguments(cls, when=is_of_program)

    def __init__(self, acting: Acting) -> None:
        self.acting = acting

    @property
    def app(self) -> AppContext:
        return self.acting.app

    @property
    def caller(self) -> Caller:
        return self.acting.caller

    def tries(self, **named: object) -> None:
        """Name what the verb is about to create, for the audit entry of a refusal."""
        self.acting.tried.update(named)

    def name_for(self, by: str | None) -> str:
        """Return the name to record for an action: the caller's, or `by`, which only people at the machine of the store
        may choose. Raises `NotAllowed`."""
        if by is None:
            return self.caller.name
        if not self.caller.is_machine:
            raise NotAllowed(f"{self.caller.name!r} may not act under another name", hint="Omit the name.")
        return by


@dataclass(frozen=True, slots=True)
class VerbRule:
    """Who may call a verb, and what is recorded of a call."""

    name: str
    """`ExecutionVerbs.cancel`"""
    role: Role
    """The lowest role that may call it."""
    what: str
    """Text for the error, as in "cancel executions"."""
    audit: bool
    """Whether calls are recorded."""
    target: tuple[str, ...] = ()
    when: str = ""
    unless: str = ""
    exports: bool = False
    """Whether it changes nothing in the store, so that it works on a read-only one, without an audit entry."""

    def records(self, arguments: Mapping[str, object]) -> bool:
        """Return whether a call with these arguments is recorded."""
        if not self.audit or (self.unless and arguments.get(self.unless)):
            return False
        return not self.when or bool(arguments.get(self.when))

    def target_of(self, arguments: Mapping[str, object]) -> str:
        """Return the target of a call: the named arguments that were given."""
        return target_text({name: arguments.get(name) for name in self.target})


def verb(
    role: Role,
    what: str,
    *,
    audit: bool = True,
    target: tuple[str, ...] = (),
    when: str = "",
    unless: str = "",
    exports: bool = False,
    made: Callable[[Any], Mapping[str, object]] = lambda _: {},
) -> Callable[[Callable[Concatenate[V, P], Awaitable[R]]], Callable[Concatenate[V, P], Coroutine[Any, Any, R]]]:
    """Make a method a verb: see the module. `what` completes the error "'ada' is a viewer and may not …".

    The verb raises `NotAllowed` if the role does not suffice, and what the method raises.
    """

    def decorate(
        function: Callable[Concatenate[V, P], Awaitable[R]],
    ) -> Callable[Concatenate[V, P], Coroutine[Any, Any, R]]:
        parameters = inspect.signature(function).parameters
        names = [*parameters][1:]  # without `self`
        defaults = {name: value.default for name, value in parameters.items() if value.default is not value.empty}
        rule = VerbRule(function.__qualname__, role, what, audit, target, when, unless, exports)
        if unknown := {*target, when, unless} - {"", *parameters}:
            raise TypeError(f"{rule.name} has no argument {sorted(unknown)[0]!r}")

        @wraps(function)
        async def call(self: V, /, *args: P.args, **kwargs: P.kwargs) -> R:
            acting = self.acting
            arguments = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
            if not rule.records(arguments):
                acting.caller.must_have(role, what)
                return await function(self, *args, **kwargs)
            named = acting.target or rule.target_of(arguments)
            entry = await _begin(acting, rule, named)
            try:
                result = await function(self, *args, **kwargs)
            except PointsmanError as why:
                await _note_refusal(acting, rule, entry, why.code, named)
                raise
            if entry and (fresh := _fresh_in(made(result), named)):
                acting.app[AUDIT].record_outcome(acting.caller, acting.via or rule.name, entry, fresh)
            return result

        setattr(call, _RULE, rule)
        return call

    return decorate


def rule_of(function: Callable[..., object]) -> VerbRule:
    """Return the rule of a verb, as in `rule_of(ExecutionVerbs.cancel)`."""
    return cast("VerbRule", getattr(function, _RULE))


def rules_in(verbs: type[Verbs]) -> dict[str, VerbRule]:
    """Return the rules of the verbs of a class, by the names of its methods."""
    return {name: rule_of(var) for name, var in vars(verbs).items() if hasattr(var, _RULE)}


async def _begin(acting: Acting, rule: VerbRule, target: str) -> str:
    """Check the role and write the audit entry of a call; return its id. Empty: the store cannot be written, and the
    call is in the log."""
    try:
        acting.caller.must_have(rule.role, rule.what)
    except NotAllowed as why:
        await _refuse(acting, rule, target, why.code)
        raise
    what = acting.via or rule.name
    if rule.exports and acting.app.store.read_only:
        warning = "%s by %r is not in the audit log, because the store is read-only: %s"
        LOG.warning(warning, what, acting.caller.name, target[:TARGET_CHARS_MAX] or "everything")
        return ""
    entry = await acting.app[AUDIT].record_request(acting.caller, what, target=target, origin=acting.origin)
    acting.entries.append(entry)
    return entry


async def _refuse(acting: Acting, rule: VerbRule, target: str, code: str) -> None:
    """Write the entry of a call that is refused at once."""
    what = acting.via or rule.name
    with suppress(OperatorError):  # The store is unavailable: the caller receives the refusal in any case.
        entry = await acting.app[AUDIT].record_request(
            acting.caller, what, target=target, origin=acting.origin, refused=code
        )
        acting.entries.append(entry)


async def _note_refusal(acting: Acting, rule: VerbRule, entry: str, code: str, target: str) -> None:
    if not entry:
        return
    with suppress(OperatorError):  # The store is unavailable: the caller receives the refusal in any case.
        tried = _fresh_in(acting.tried, target)
        await acting.app[AUDIT].record_refusal(acting.caller, acting.via or rule.name, entry, code, tried=tried)


def target_text(named: Mapping[str, object]) -> str:
    """Return the target of an audit entry: the names that have a value."""
    return ", ".join(
        f"{name}={_text(value)}" for name, value in named.items() if value not in (None, "", (), [], False)
    )


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(str, cast("tuple[object, ...]", value)))
    return "yes" if value is True else str(value)


def _fresh_in(named: Mapping[str, object], target: str) -> str:
    """Return the names in an answer that the target of the action does not contain. Empty if the action created nothing
    that has a name."""
    known = {one.partition("=")[2] for one in target.split(", ")}
    fresh = [f"{name}={value}" for name, value in named.items() if str(value) not in known]
    return ", ".join(fresh) if set(named) != {"revision"} else ""


def tool_target(arguments: JsonObject) -> str:
    """Return the target of a tool call in audit entries: the arguments that identify the changed thing."""
    return target_text({name: arguments[name] for name in TOOL_NAMES if isinstance(arguments.get(name), str | int)})
