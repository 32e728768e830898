"""Operations on models: list, ping, connect providers, choose the default model."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import Field

from pointsman.operations.model_catalogue import ModelCatalogue, ModelPings
from pointsman.operations.model_connections import (
    MODEL_CHARS_MAX,
    ConnectionRequest,
    ProviderConnection,
    ProviderKinds,
)
from pointsman.operations.model_ping import ModelPing
from pointsman.operations.provider_keys import ModelKeys
from pointsman.operations.verbs import OperationVerbs
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import IfMatch, Match
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, sample

router = Operations(tags=["tools"])

ProviderName = Annotated[
    str, Path(min_length=1, max_length=40, description="The provider's name, as in `provider:model`.")
]
KEY_CHARS_MAX: Final = 10_000
ADDRESS_CHARS_MAX: Final = 2_000


class ConnectionBody(Body):
    """A provider of models."""

    model_config = sample(kind="openai", key="sk-0badcafe0badcafe", model="gpt-5-mini", default=True)
    kind: str = Field(min_length=1, max_length=60, description="The kind of the provider, as the kinds list it.")
    key: str | None = Field(
        default=None, max_length=KEY_CHARS_MAX, description="Its API key, never shown again. Absent: the stored one."
    )
    base_url: str = Field(default="", max_length=ADDRESS_CHARS_MAX, description="Its address; empty: the usual one.")
    region: str = Field(default="", max_length=60, description="The region, of Bedrock.")
    api_version: str = Field(default="", max_length=60, description="The version of the API, of Azure.")
    model: str = Field(default="", max_length=MODEL_CHARS_MAX, description="The model to test, without its provider.")
    default: bool = Field(default=False, description="Use the model for agents without a model.")
    test: bool = Field(default=True, description="Send a one-word request first, and save only if it is answered.")


class DefaultModelBody(Body):
    """The default model."""

    model_config = sample(model="openai:gpt-5-mini")
    model: str = Field(max_length=MODEL_CHARS_MAX, description="`provider:model`; empty: no default model.")


example(
    ModelCatalogue,
    {
        "default": "scripted",
        "defaultFrom": "--model",
        "defaultEtag": "",
        "forEveryAgent": True,
        "models": [
            {
                "name": "scripted",
                "uses": ["default"],
                "scripted": True,
                "inputUsdPerMillion": None,
                "outputUsdPerMillion": None,
                "priceFrom": None,
            }
        ],
        "providers": [],
        "prices": {"name": "genai-prices", "version": "0.2.3", "installed": "2026-11-21"},
    },
)
example(
    ModelKeys,
    {
        "providers": [
            {
                "name": "groq",
                "missing": None,
                "strategy": "rotation",
                "interval": 0.4,
                "keyInterval": 0.0,
                "concurrency": 4,
                "callsMax": None,
                "shared": False,
                "waiting": 0,
                "keys": [
                    {
                        "id": "groq/0",
                        "name": "env:GROQ_KEY_1",
                        "condition": "cooling",
                        "until": 1_763_700_130.0,
                        "why": "model-rate-limited",
                        "open": 0,
                        "calls": 12,
                        "usedAt": 1_763_700_098.0,
                        "failed": "model-rate-limited",
                        "failedAt": 1_763_700_100.0,
                        "today": {"calls": 120, "tokens": 81_000, "costUsd": 0.4},
                        "mostToday": {"calls": None, "tokens": None, "costUsd": 5.0},
                    }
                ],
            }
        ],
        "at": 1_763_700_100.0,
        "beginsAnew": 1_763_769_600.0,
        "shared": True,
    },
)
ANSWERED: Final[ModelPing] = {
    "name": "openai:gpt-5-mini",
    "ok": True,
    "scripted": False,
    "seconds": 0.8,
    "model": "gpt-5-mini",
    "costUsd": 0.00001,
}
example(ModelPing, ANSWERED)
example(ModelPings, {"models": [ANSWERED]})
example(
    ProviderKinds,
    {
        "kinds": [
            {
                "kind": "openai",
                "needsKey": True,
                "needsAddress": False,
                "takesAddress": True,
                "takesRegion": False,
                "installed": True,
                "install": "",
                "models": ["gpt-5-mini"],
                "suggested": "gpt-5-mini",
                "setBy": None,
            }
        ]
    },
)
example(ProviderConnection, {"saved": True, "ping": ANSWERED, "default": "openai:gpt-5-mini"})


@router.get("/api/models", verb=OperationVerbs.models, responses=answers(ModelCatalogue), summary="List models")
async def models(session: CallerSession) -> Response:
    """Return the models, the places that name them, their prices, and their providers."""
    return JsonReply(await session.operations.models())


@router.get("/api/models/keys", verb=OperationVerbs.model_keys, responses=answers(ModelKeys), summary="List model keys")
async def keys(session: CallerSession) -> Response:
    """The keys of each provider, by name, with their state:

    free, resting, or at their daily limit. Calls in progress are those of the process that answers.
    """
    return JsonReply(await session.operations.model_keys())


@router.post(
    "/api/models/ping", verb=OperationVerbs.ping_models, responses=answers(ModelPings), summary="Ping the models"
)
async def ping(session: CallerSession) -> Response:
    """Send a one-word request to each named model. The provider may charge for it."""
    return JsonReply(await session.operations.ping_models())


@router.get(
    "/api/models/kinds",
    verb=OperationVerbs.provider_kinds,
    responses=answers(ProviderKinds),
    summary="List kinds of model providers",
)
async def kinds(session: CallerSession) -> Response:
    """The kinds of providers that can be connected, with what each requires and its known models."""
    return JsonReply(await session.operations.provider_kinds())


@router.put(
    "/api/models/providers/{name}",
    verb=OperationVerbs.connect_provider,
    responses=answers(
        ProviderConnection, "provider-invalid", "provider-in-settings", "revision-moved", "vault-locked", body=True
    ),
    summary="Connect a model provider",
)
async def connect(session: CallerSession, name: ProviderName, body: ConnectionBody, match: Match = None) -> Response:
    """Test the provider, then store it, with its key encrypted. The next call of a model uses it.

    A provider that the settings or the environment configure cannot be replaced. `saved` is false, and nothing is
    changed, if the model did not answer.
    """
    request = ConnectionRequest(**body.model_dump())
    return JsonReply(await session.operations.connect_provider(name, request, match=match))


@router.delete(
    "/api/models/providers/{name}",
    verb=OperationVerbs.disconnect_provider,
    status_code=204,
    responses=refusals("no-such-provider", "revision-moved"),
    summary="Disconnect a model provider",
)
async def disconnect(session: CallerSession, name: ProviderName, if_match: IfMatch = None) -> Response:
    """Delete a connected provider and its key. A default model of this provider is no longer one."""
    await session.operations.disconnect_provider(name, match=if_match)
    return Response(status_code=204)


@router.put(
    "/api/models/default",
    verb=OperationVerbs.choose_default_model,
    status_code=204,
    responses=refusals("provider-invalid", "provider-in-settings", "revision-moved", body=True),
    summary="Choose the default model",
)
async def choose_default(session: CallerSession, body: DefaultModelBody, match: Match = None) -> Response:
    """Use a model for agents without a model. A model that the settings or the command name has precedence."""
    await session.operations.choose_default_model(body.model, match=match)
    return Response(status_code=204)
