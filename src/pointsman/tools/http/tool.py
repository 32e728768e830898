"""HTTP tools: a request from the settings or a file whose placeholders are filled with the arguments of a call.

url = "https://api.example.org/v1/{city}"        arguments in the path are encoded as one segment
query = {days = "{days}"}                        `{name}` alone keeps its type; left out if missing
headers = {Authorization = "Bearer {secret.WEATHER}"}
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast
from urllib.parse import quote, urlsplit

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pointsman.engine.failures import Failure
from pointsman.errors import PointsmanError
from pointsman.ports import KnownSecrets, ToolSpec
from pointsman.redaction import Redaction, hiding, redaction_of
from pointsman.tools.egress.addresses import SecretHosts
from pointsman.tools.tool import CORRECT_ARGUMENTS, ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointsman.tools.egress.http_calls import HttpCall, Outgoing


PLACE: Final = re.compile(r"\{(secret\.)?([A-Za-z_][\w.-]*)\}")
NAME: Final = r"^[A-Za-z_][\w-]{0,63}$"
"""The tool names that model providers accept."""

_ORIGIN: Final = re.compile(r"https?://[^/?#{}\s]+(?=[/?#]|$)")


def _object(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    return cast("object", value)


AnObject = Annotated[dict[str, object], BeforeValidator(_object)]


class HttpToolDescription(BaseModel):
    """One tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    description: str = ""
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: str
    """Its scheme and host are fixed: arguments cannot change them."""
    query: AnObject = Field(default_factory=dict[str, object])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    body: object = None
    """A JSON tree; `"{name}"` is the argument itself."""
    parameters: AnObject = Field(default_factory=dict[str, object])
    """JSON Schema of the arguments. Absent: one text for each placeholder."""
    requires_approval: bool = False
    idempotent: bool | None = None
    """Absent: true for GET, HEAD, PUT and DELETE."""

    @model_validator(mode="after")
    def _leads_to_one_place(self) -> HttpToolDescription:
        if _ORIGIN.match(self.url) is None:
            raise ValueError("`url` must begin with http(s)://host, without placeholders in it")
        return self

    @property
    def schema_of_arguments(self) -> JsonObject:
        if self.parameters:
            return cast("JsonObject", self.parameters)
        names = list(dict.fromkeys(_argument_names([self.url, self.query, self.headers, self.body])))
        in_path: list[Json] = [*dict.fromkeys(_argument_names([self.url]))]
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": in_path,
            "additionalProperties": False,
        }

    @property
    def may_be_repeated(self) -> bool:
        return self.method in ("GET", "HEAD", "PUT", "DELETE") if self.idempotent is None else self.idempotent


def _argument_names(tree: object) -> list[str]:
    """Return the names of all arguments in a tree."""
    match tree:
        case str():
            return [name for secret, name in PLACE.findall(tree) if not secret]
        case list():
            return [name for one in cast("list[object]", tree) for name in _argument_names(one)]
        case dict():
            return [name for one in cast("dict[str, object]", tree).values() for name in _argument_names(one)]
        case _:
            return []


LIMITS: Final = ToolLimits()


class HttpTool:
    """An HTTP tool. Its result is the body of the response: JSON, text or base64."""

    def __init__(
        self, name: str, described: HttpToolDescription, *, outgoing: Callable[[], Outgoing], secrets: KnownSecrets
    ) -> None:
        """`outgoing` is called at the first request, because it loads an HTTP client."""
        self.name = name
        self.limits = LIMITS
        self.spec = ToolSpec(
            name=name,
            description=described.description,
            parameters=described.schema_of_arguments,
            idempotent=described.may_be_repeated,
            requires_approval=described.requires_approval,
        )
        self._described = described
        self._outgoing = outgoing
        self._secrets = secrets

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Send the request and return its result. Raises `ToolFailed`."""
        from pointsman.tools.http.messages import request_of

        filling = Filling(arguments, self._secrets)
        described = self._request(filling)
        redaction = redaction_of(frozenset(filling.used.values()))
        call = request_of(described, key=context.idempotency_key)
        with hiding(redaction):
            return await self._sent(call, filling, redaction)

    async def _sent(self, call: HttpCall, filling: Filling, redaction: Redaction) -> Json:
        from pointsman.tools.http.messages import data_of, failure_of_call, failure_of_status

        try:
            answer = await self._outgoing().send(call, self._guards(filling))
            data = data_of(answer, None, redaction.data)
        except PointsmanError as why:
            raise ToolFailed(masked(failure_of_call(call, why), redaction)) from why
        failure = failure_of_status(call, answer, redaction.data)
        if failure is not None:
            raise ToolFailed(masked(failure, redaction))
        return redaction.json(data)

    def _guards(self, filling: Filling) -> tuple[SecretHosts, ...]:
        """Return where each used secret may be sent: to the host of this tool, since the settings name both together,
        and to the hosts of the secret's own rule."""
        own = origin_of(self._described.url)
        return tuple(
            SecretHosts(name=name, value=value, hosts=(own, *self._secrets.rule(name).hosts))
            for name, value in filling.used.items()
        )

    def _request(self, filling: Filling) -> JsonObject:
        described = self._described
        result: JsonObject = {
            "url": filling.address(described.url),
            "method": described.method,
            "query": filling.tree(cast("Json", described.query)),
            "headers": filling.tree({**described.headers}),
        }
        if described.body is not None:
            body = filling.whole(cast("Json", described.body))
            result["body"] = None if body is UNSET else body
        return result


class Filling:
    """Fills the placeholders of one call with arguments and secrets."""

    def __init__(self, arguments: JsonObject, secrets: KnownSecrets) -> None:
        self._arguments = arguments
        self._secrets = secrets
        self.used: dict[str, str] = {}
        """The secrets that were filled in, by name."""

    def address(self, url: str) -> str:
        """Return the address. Each argument is quoted, so that it cannot change the host or the path. Raises
        `ToolFailed`."""

        def piece(secret: str, name: str) -> str:
            text = self._secret(name) if secret else _text(self._arguments.get(name))
            if text in ("", ".", ".."):
                raise _wrong(f"the argument {name!r} is {text!r}, which cannot be part of an address")
            return quote(text, safe="")

        return PLACE.sub(lambda place: piece(place[1], place[2]), url)

    def tree(self, tree: Json) -> Json:
        """Return the tree filled in, without entries whose argument is missing."""
        if isinstance(tree, dict):
            filled = {key: self.whole(value) for key, value in tree.items()}
            return {key: value for key, value in filled.items() if value is not UNSET}
        if isinstance(tree, list):
            return [value for value in map(self.whole, tree) if value is not UNSET]
        return tree

    def whole(self, value: Json) -> Json | UnsetType:
        """Return the value filled in; `UNSET` for a placeholder whose argument is missing."""
        if not isinstance(value, str):
            return self.tree(value)
        place = PLACE.fullmatch(value)
        if place is not None and not place[1]:
            return self._arguments.get(place[2], UNSET)
        return PLACE.sub(
            lambda place: self._secret(place[2]) if place[1] else _text(self._arguments.get(place[2])), value
        )

    def _secret(self, name: str) -> str:
        value = self._secrets.secret(name)
        if value is None:
            hint = f"`pointsman secrets set {name}`, or set POINTSMAN_SECRET_{name}."
            message = f"the secret {name!r} is not set"
            raise ToolFailed(Failure(code="secret-missing", message=message, hint=hint, needs=f"secret:{name}"))
        self.used[name] = value
        return value


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address, in the form of the `hosts` of a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def masked(failure: Failure, redaction: Redaction) -> Failure:
    """Return the failure with secrets masked in message and details."""
    return replace(
        failure,
        message=redaction.text(failure.message),
        details=cast("JsonObject | None", redaction.json(failure.details)),
    )


def _text(value: Json) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case list() | dict():
            raise _wrong("a list or an object cannot be part of a text")


def _wrong(message: str) -> ToolFailed:
    return ToolFailed(Failure(code="tool-arguments", message=message, hint=CORRECT_ARGUMENTS))
