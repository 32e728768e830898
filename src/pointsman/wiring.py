"""Wiring: models, tools and memory behind the executors of one installation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pointsman.auth.secrets import SecretAccess
from pointsman.auth.step_rights import GuardedTools
from pointsman.auth.tool_secrets import FreshTools
from pointsman.call_observers import Calls, HeardModels, HeardTools
from pointsman.executions.artifacts import artifact
from pointsman.executions.isolation import Isolation
from pointsman.executors.attachments import Fetched
from pointsman.executors.memory import MemoryExecutor
from pointsman.executors.registry import Executors
from pointsman.models.script import Script
from pointsman.models.transport import PydanticModels, is_scripted
from pointsman.operations.key_leases import KeptTurns
from pointsman.operations.spending import KeptSpending
from pointsman.ports import Clock, Executor, Found, Secrets, Tools
from pointsman.settings import Settings
from pointsman.store.api import Store, Workflows
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.sandbox.interpreter import CodeLimits, Interpreter
from pointsman.tools.unscripted import UnscriptedTools
from pointsman.workflows.cache_basis import CacheBasis
from pointsman.workflows.model_setup import models_for
from pointsman.workflows.workflow_tools import WorkflowTools

if TYPE_CHECKING:
    from pointsman.chat.semantic_search import KeptMeaning
    from pointsman.tools.egress.http_calls import Outgoing
    from pointsman.tools.egress.transport import Rules


@dataclass(frozen=True, slots=True)
class Hands:
    """What carries out work."""

    executors: Executors
    models: PydanticModels
    tools: ToolRegistry
    interpreter: Interpreter
    meaning: KeptMeaning | None
    """Absent: memory is searched by words."""
    lent: bool = False
    """Its models are those of another, who closes them."""

    async def close(self) -> None:
        if self.meaning is not None:
            await self.meaning.close()
        if not self.lent:
            await self.models.close()
        await self.tools.close()
        await self.interpreter.close()


def http_executor(settings: Settings, secrets: Secrets) -> Executor:
    from pointsman.executors.http import HttpExecutor  # It loads an HTTP client.

    return HttpExecutor(outgoing_of(settings), secrets)


def outgoing_of(settings: Settings) -> Outgoing:
    """The way out for calls whose address is data, as the operator allows."""
    from pointsman.tools.egress.http_calls import Outgoing  # As above.

    http = settings.http
    return Outgoing(rules_of(settings), timeout_s=http.timeout.seconds, body_bytes_max=http.body_bytes_max)


def rules_of(settings: Settings) -> Rules:
    """Where calls may go whose address is data."""
    from pointsman.tools.egress.transport import WEB_PORTS, Rules  # As above.

    http = settings.http
    return Rules(networks=http.networks, ports=WEB_PORTS | {*http.ports}, plain=http.plain)


def interpreter_of(settings: Settings) -> Interpreter:
    """What runs the code of code nodes. Starts nothing yet."""
    sandbox = settings.sandbox
    limits = CodeLimits(
        seconds=sandbox.timeout.seconds,
        memory_bytes=sandbox.memory.bytes,
        result_bytes=sandbox.result.bytes,
        at_once=sandbox.at_once or 0,
    )
    return Interpreter(limits, box=sandbox.box)


def _http(settings: Settings, secrets: Secrets, isolation: Isolation | None) -> Executor:
    real = http_executor(settings, secrets)
    return real if isolation is None else isolation.http_executor(real)


async def _fetched(settings: Settings, url: str, isolation: Isolation | None) -> Fetched:
    if isolation is not None:
        isolation.refuse_file(url)
    from pointsman.tools.egress.http_calls import Call  # As above.

    answer = await outgoing_of(settings).send(Call(method="GET", url=url))
    return Fetched(answer.status, answer.headers.get("content-type", ""), answer.body)


def wire(
    settings: Settings,
    tools: ToolRegistry,
    store: Store,
    clock: Clock,
    *,
    model: str | None,
    script: Script | None,
    workflows: Workflows | None = None,
    calls: Calls | None = None,
    lent: PydanticModels | None = None,
    isolation: Isolation | None = None,
) -> Hands:
    """Connect nothing yet. `workflows`: the saved ones of another store, instead of this one's; `calls` hears of calls
    of models and tools; `lent`: models of another, whose keys are paced and paid for together;
    `isolation`: what may be reached outside, in workflow tests."""
    heard = calls or Calls()
    tools.add_source(WorkflowTools(workflows or store.workflows))
    models = lent or models_for(
        settings, model=model, script=script, spending=KeptSpending(store), turns=KeptTurns(store, clock)
    )
    played = is_scripted(model or "")
    secrets = SecretAccess(settings, workflows or store.workflows)
    called: Tools = GuardedTools(FreshTools(tools, secrets))
    if isolation is not None:
        called = isolation.tools(called, tools)
    interpreter = interpreter_of(settings)
    meaning = None if played else meaning_of(settings, store, clock, models)
    finds = WordsOnly(store) if played and settings.memory.embeddings is not None else meaning
    hands = Executors(
        models=HeardModels(models, heard, clock),
        tools=HeardTools(UnscriptedTools(called) if played else called, heard, clock),
        memory=MemoryExecutor(store.memory, clock, settings.memory.quota, meaning=finds),
        http=lambda: _http(settings, secrets, isolation),
        fetch=lambda url: _fetched(settings, url, isolation),
        keep=None if settings.files is None else partial(artifact, settings),
        interpreter=interpreter,
        secrets=secrets,
        reaches=models.reaches,
        basis=CacheBasis(models, tools),
        plugins=isolation is None,
    )
    return Hands(hands, models, tools, interpreter, meaning, lent=lent is not None)


class WordsOnly:
    """Searches memory by words where the scripted model plays: no model of embeddings is asked. Says so."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def changed(self, scope: str, namespace: str) -> None:
        """Words need no preparation."""

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int, within: str = "", at: float = 0.0
    ) -> Found:
        found = await self._store.memory.search(scope, namespace, text, limit=limit, within=within, at=at)
        return Found(found, ("found by words alone: with the scripted model no model of embeddings is asked",))


def meaning_of(settings: Settings, store: Store, clock: Clock, models: PydanticModels) -> KeptMeaning | None:
    """None: memory is searched by words."""
    if settings.memory.embeddings is None:
        return None
    from pointsman.chat.semantic_search import KeptMeaning  # Most installations do without.

    return KeptMeaning(store, clock, models.embed, settings.memory.embeddings)
