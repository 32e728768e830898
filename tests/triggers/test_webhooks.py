"""Webhooks: only signed calls are accepted, duplicates count once, and no answer reveals which paths exist."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.auth.callers import LOCAL
from pointsman.errors import CallerError
from pointsman.settings import Settings
from pointsman.tools.egress.addresses import SecretRefused
from pointsman.triggers.signatures import key_of, sign, verify
from pointsman.triggers.triggers import WebhookTaken, put_declared
from pointsman.triggers.views import try_webhook
from pointsman.triggers.webhooks import (
    BodyInvalid,
    BodyTooLarge,
    SecretMissing,
    WebhookRefused,
    read_body,
)
from pointsman.values import Json, JsonObject
from tests.installation import HandClock, listening, noting, opened

pytestmark = pytest.mark.integration

SECRET = "a secret of more than sixteen characters"
BODY = b'{"issue": {"title": "it leaks"}}'


def hook(**more: Json) -> JsonObject:
    return {"id": "hook", "type": "webhook", "path": "issues", "secret": SECRET, **more}


def standard(at: float, *, body: bytes = BODY, id: str = "msg-1", secret: str = SECRET) -> dict[str, str]:
    return {
        "Webhook-Id": id,
        "Webhook-Timestamp": str(int(at)),
        "Webhook-Signature": sign(key_of(secret), id, int(at), body),
        "Content-Type": "application/json",
    }


def github(*, body: bytes = BODY, id: str = "1", secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Delivery": id, "X-GitHub-Event": "issues"}


async def refused(app: Pointsman, path: str, body: bytes, headers: dict[str, str]) -> str:
    with pytest.raises(WebhookRefused) as why:
        await app.webhook(path, body, headers)
    return f"{why.value} {why.value.hint}"


async def test_a_signature_of_one_scheme_is_refused_in_the_other(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting("plain", triggers=[hook()]))
        await app.save(noting("hub", triggers=[hook(path="hub", scheme="github")]))
        good = standard(clock.now())
        replayed = f"{good['Webhook-Id']}.{good['Webhook-Timestamp']}.".encode() + BODY
        digest = base64.b64decode(good["Webhook-Signature"].removeprefix("v1,")).hex()
        copied = {"X-Hub-Signature-256": f"sha256={digest}", "Content-Type": "application/json"}
        for path in ("issues", "hub"):
            with pytest.raises(WebhookRefused):
                await app.webhook(path, replayed, copied)
        assert await refused(app, "issues", replayed, copied)
        assert await refused(app, "issues", BODY, github())
        assert await refused(app, "issues", BODY, {**github(), "Webhook-Signature": "v1,"})
        assert await refused(app, "hub", BODY, good)
        assert await app.executions() == []
        whys = [one.why for one in await app.triggers.webhooks.deliveries.note("hub")]
        assert any("`scheme` of the trigger" in why for why in whys)


@pytest.mark.parametrize(("auth", "taken"), [(None, False), ("none", True)])
async def test_a_webhook_without_a_secret_accepts_calls_only_if_declared_open(
    tmp_path: Path, auth: str | None, taken: bool
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        source = noting(triggers=[hook(secret=None, auth=auth)])
        warned = [one.code for one in (await app.check(source)).problems]
        assert ("webhook-unsigned" in warned) is not taken
        await app.save(source)
        if taken:
            assert (await app.webhook("issues", BODY, {"content-type": "application/json"})).started
            return
        for headers in ({"content-type": "application/json"}, standard(clock.now()), github()):
            assert await refused(app, "issues", BODY, headers)
        (*_, why) = [one.why for one in await app.triggers.webhooks.deliveries.note("issues")]
        assert "auth: none" in why
        assert await app.executions() == []


async def test_a_webhook_with_a_secret_refuses_unsigned_calls(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        checked = await app.check(noting(triggers=[hook(auth="none")]))
        assert "webhook-auth-conflict" in [one.code for one in checked.problems]
        assert not checked.ok


async def test_webhooks_of_two_schemes_can_share_a_secret(tmp_path: Path) -> None:
    """A text signed for one scheme is not a call of the other, also if it can be split or read in another way."""
    clock, form = HandClock(), {"Content-Type": "application/x-www-form-urlencoded"}
    async with opened(tmp_path, clock) as app:
        await app.save(noting("plain", triggers=[hook()]))
        await app.save(noting("hub", triggers=[hook(path="hub", scheme="github")]))
        now = int(clock.now())
        good = standard(now)
        replayed = f"{good['Webhook-Id']}.{now}.".encode() + BODY
        digest = base64.b64decode(good["Webhook-Signature"].removeprefix("v1,")).hex()
        assert await refused(app, "hub", replayed, {"X-Hub-Signature-256": f"sha256={digest}", **form})
        for chosen in (f'{{"title": "x.{now}.a=1"}}', f"title=x.{now}.a=1", f"payload=%7B.{now}.a=1"):
            delivery, _, rest = chosen.partition(f".{now}.")
            digest = hmac.digest(SECRET.encode(), chosen.encode(), hashlib.sha256)
            signature = "v1," + base64.b64encode(digest).decode()
            headers = {"Webhook-Id": delivery, "Webhook-Timestamp": str(now), "Webhook-Signature": signature, **form}
            assert await refused(app, "issues", rest.encode(), headers)
        assert await app.executions() == []


@pytest.mark.parametrize("secret", ["", "   ", "short", "whsec_", "whsec_AAAA"])
async def test_an_empty_or_short_secret_is_refused(tmp_path: Path, secret: str) -> None:
    clock = HandClock()
    known = (b"", b"the key of nobody, so that an unknown path takes as long as a known one", key_of(secret))
    async with opened(tmp_path, clock, settings=Settings(secrets={"HOOK": secret})) as app:
        await app.save(noting(triggers=[hook(secret="secret.HOOK")]))
        await app.save(noting("hub", triggers=[hook(path="hub", secret="secret.HOOK", scheme="github")]))
        for key in known:
            at = int(clock.now())
            signed = {"webhook-id": "1", "webhook-timestamp": str(at), "webhook-signature": sign(key, "1", at, BODY)}
            hub = {"x-hub-signature-256": "sha256=" + hmac.new(key, BODY, hashlib.sha256).hexdigest()}
            for path, headers in (("issues", signed), ("hub", hub)):
                assert "HOOK" not in await refused(app, path, BODY, headers)
                for scheme in ("standard", "github"):
                    assert not verify(key_of(secret), scheme, BODY, headers, clock.now()).ok
        (delivery, *_) = await app.triggers.webhooks.deliveries.note("issues")
        assert (delivery.outcome, delivery.code) == ("refused", "secret-missing"), "its owner sees why"
        assert "'HOOK'" in delivery.why
        assert await app.executions() == []


async def test_an_empty_secret_does_not_open_a_webhook(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        document = noting(triggers=[hook(secret="secret.HOOK")])
        await app.save(document)
        entry = await app.store.entries.find("webhook", "issues")
        assert entry is not None
        workflow, _ = await app.library.saved("report")
        assert workflow.triggers is not None
        emptied = workflow.model_copy(update={"triggers": [workflow.triggers[0].model_copy(update={"secret": ""})]})
        await put_declared(app.context, emptied, app.triggers.webhooks.deliveries)
        assert await refused(app, "issues", BODY, {})
        assert await app.executions() == []


@pytest.mark.parametrize(
    "changed",
    [
        {"Webhook-Id": "a.1"},
        {"Webhook-Timestamp": "0{at}"},
        {"Webhook-Timestamp": " {at}"},
        {"Webhook-Timestamp": "+{at}"},
        {"Webhook-Timestamp": "{at}.0"},
        {"Webhook-Timestamp": ""},
        {"Webhook-Signature": ""},
        {"Webhook-Signature": "v1,"},
        {"Webhook-Signature": "v1a,{signature}"},
        {"Webhook-Signature": "{signature}"},
        {"Webhook-Signature": "v1, v1 {signature}"},
        {"Webhook-Signature": "v1,AAAA " * 20 + "v1,{signature}"},
    ],
    ids=str,
)
async def test_signature_headers_are_parsed_strictly(tmp_path: Path, changed: dict[str, str]) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook()]))
        good = standard(clock.now(), id=changed.get("Webhook-Id", "msg-1"))
        found = {"at": good["Webhook-Timestamp"], "signature": good["Webhook-Signature"].removeprefix("v1,")}
        assert await refused(app, "issues", BODY, good | {name: one.format(**found) for name, one in changed.items()})


async def test_a_changed_secret_applies_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    monkeypatch.setenv("POINTSMAN_SECRET_HOOK", SECRET)
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook(secret="secret.HOOK")]))
        assert (await app.webhook("issues", BODY, standard(clock.now()))).started is not None
        monkeypatch.setenv("POINTSMAN_SECRET_HOOK", SECRET[::-1])
        assert await refused(app, "issues", BODY, standard(clock.now(), id="msg-2"))
        assert (await app.webhook("issues", BODY, standard(clock.now(), id="msg-3", secret=SECRET[::-1]))).started


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ({"workflows": ("other",)}, False),
        ({"workflows": ("report@2",)}, False),
        ({"groups": ("finance",)}, False),
        ({"workflows": ("report",)}, True),
        ({"workflows": ("report@1",)}, True),
        ({"hosts": ("api.example",)}, True),
    ],
    ids=str,
)
async def test_a_webhook_uses_only_secrets_that_its_workflow_may_use(
    tmp_path: Path, rule: dict[str, tuple[str, ...]], allowed: bool
) -> None:
    """Otherwise an editor could accept the calls of a sender whose secret belongs to another workflow."""
    clock = HandClock()
    given = Settings.model_validate({"secrets": {"HOOK": {"value": SECRET, **rule}}})
    async with opened(tmp_path, clock, settings=given) as app:
        await app.save(noting(triggers=[hook(secret="secret.HOOK")]))
        if allowed:
            assert (await app.webhook("issues", BODY, standard(clock.now()))).started is not None
            return
        told = await refused(app, "issues", BODY, standard(clock.now()))
        assert told == await refused(app, "nothing", BODY, standard(clock.now()))
        (delivery,) = await app.triggers.webhooks.deliveries.note("issues")
        assert (delivery.code, "may be used by" in delivery.why) == ("secret-refused", True)
        assert "pointsman secrets allow HOOK" in delivery.hint
        with pytest.raises(SecretRefused, match="may be used by"):
            await try_webhook(app.context, LOCAL, "report", "hook", {})
        assert await app.executions() == []


@pytest.mark.parametrize("forged", ["webhook|issues|msg-1", "webhook|6:issues|5:msg-1", "issues|msg-1", "msg-1"])
async def test_idempotency_keys_of_api_callers_do_not_match_webhook_calls(tmp_path: Path, forged: str) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook(event="paid")]))
        waits = await app.start(listening())
        await waits.settled()
        await waits.signal("other", {"amount": 1}, key=forged)
        await app.publish("other", {"amount": 1}, key=forged, by="webhook issues")
        received = await app.webhook("issues", BODY, standard(clock.now()))
        assert received.published is not None
        assert received.published.delivered == (waits.id,)


async def test_each_caller_has_its_own_idempotency_keys(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting(triggers=[{"id": "paid", "type": "event", "event": "paid"}]))
        first = await app.publish("paid", {}, key="1", by="ada")
        assert first.key == "1"
        assert (await app.publish("paid", {}, key="1", by="ada")).started == first.started
        other = await app.publish("paid", {}, key="1", by="bob")
        assert other.started != first.started
        split = await app.publish("paid", {}, key="a|1", by="bo")
        assert (await app.publish("paid", {}, key="1", by="bo|a")).started != split.started
        unnamed = await app.publish("paid", {}, by="ada")
        assert (await app.publish("paid", {}, key=unnamed.key, by="ada")).started == unnamed.started


@pytest.mark.requirement("S1-O8")
async def test_a_repeated_signed_call_starts_the_workflow_once(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook(inputs={"title": "event.issue.title"})]))
        first = await app.webhook("issues", BODY, standard(clock.now()))
    async with opened(tmp_path, clock) as app:
        again = await app.webhook("issues", BODY, standard(clock.now()))
        assert first.started == again.started
        assert first.started is not None
        assert (await app.open(first.started)).state.setup.input == {"title": "it leaks"}
        other = await app.webhook("issues", BODY, standard(clock.now(), id="msg-2"))
        assert other.started != first.started


@pytest.mark.parametrize("declared", [{"scheme": "github"}, {"secret": None, "auth": "none"}], ids=["github", "open"])
@pytest.mark.parametrize("named", ["2", hashlib.sha256(b'{"amount": 5}').hexdigest()], ids=["an id", "a hash"])
async def test_a_copied_body_under_the_id_of_another_call_does_not_use_up_that_call(
    tmp_path: Path, declared: JsonObject, named: str
) -> None:
    """No signature covers these ids: a stranger can send a copy of a body under any of them."""
    trigger: Json = {name: value for name, value in hook(**declared).items() if value is not None}
    later = b'{"amount": 5}'
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting(triggers=[trigger]))
        copied = await app.webhook("issues", BODY, github(id=named))
        received = await app.webhook("issues", later, github(body=later, id=named))
        assert received.started is not None
        assert received.started != copied.started
        assert (await app.webhook("issues", later, github(body=later, id=named))).started == received.started
        if named == "2":
            return
        without = {name: one for name, one in github(body=later).items() if name != "X-GitHub-Delivery"}
        assert (await app.webhook("issues", later, without)).started not in (None, copied.started)


async def test_calls_with_github_signatures_are_accepted(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        inputs: Json = {"kind": "headers['x-github-event']", "all": "event"}
        await app.save(noting(triggers=[hook(scheme="github", inputs=inputs)]))
        received = await app.webhook("issues", BODY, github())
        assert received.started is not None
        assert (await app.open(received.started)).state.setup.input == {"kind": "issues", "all": json.loads(BODY)}
        assert (await app.webhook("issues", BODY, github())).started == received.started


async def test_an_unsigned_call_is_refused_like_an_unknown_path(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook()]))
        now = clock.now()
        good = standard(now)
        calls: list[tuple[bytes, dict[str, str]]] = [
            (BODY, {}),
            (BODY + b" ", good),
            (BODY, {**good, "Webhook-Id": "msg-2"}),
            (BODY, {**good, "Webhook-Timestamp": str(int(now) + 1)}),
            (BODY, {**good, "Webhook-Timestamp": "soon"}),
            (BODY, {**good, "Webhook-Timestamp": "²"}),
            (BODY, standard(now, secret="another secret of some length")),
            (BODY, standard(now - 301)),
            (BODY, standard(now + 301)),
            (BODY, standard(now, id="")),
            (BODY, {**good, "Webhook-Signature": "v1,ÿ"}),
            (BODY, github(secret="another secret of some length")),
            (BODY, {"X-Hub-Signature-256": ""}),
        ]
        words = {await refused(app, "issues", body, headers) for body, headers in calls}
        words.add(await refused(app, "nothing", BODY, standard(now)))
        words.add(await refused(app, "../issues", BODY, {}))
        assert len(words) == 1
        assert await app.executions() == []


async def test_one_of_several_signatures_suffices_during_a_secret_rotation(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook()]))
        good = standard(clock.now())
        both = {**good, "Webhook-Signature": f"v1,bm90IHRoaXM= {good['Webhook-Signature']}"}
        assert (await app.webhook("issues", BODY, both)).started is not None


async def test_a_webhook_can_publish_an_event(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook(scheme="github", event="paid")]))
        waits = await app.start(listening())
        await waits.settled()
        received = await app.webhook("issues", b'{"amount": 5}', github(body=b'{"amount": 5}'))
        assert received.published is not None
        assert received.published.delivered == (waits.id,)
        assert waits.state.outcome.output == {"got": {"amount": 5}}
        assert await app.executions() == [await app.store.executions.find(waits.id)], "nothing was started"


async def test_a_call_that_does_not_match_is_accepted_and_starts_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting(triggers=[hook(scheme="github", match="headers['x-github-event'] == 'ping'")]))
        received = await app.webhook("issues", BODY, github())
        assert (received.started, received.published) == (None, None)
        assert await app.executions() == []


async def test_a_secret_can_be_a_handle_and_is_not_stored(tmp_path: Path) -> None:
    clock = HandClock()
    settings = Settings(secrets={"HOOK": SECRET})
    async with opened(tmp_path, clock, settings=settings) as app:
        await app.save(noting(triggers=[hook(secret="secret.HOOK")]))
        assert (await app.webhook("issues", BODY, standard(clock.now()))).started is not None
        entries = await app.store.entries.list("webhook")
        assert SECRET not in repr(entries)
    assert SECRET.encode() not in (tmp_path / "store.db").read_bytes()
    async with opened(tmp_path, clock) as app:
        assert await refused(app, "issues", BODY, standard(clock.now()))
        with pytest.raises(SecretMissing, match="HOOK"):
            await try_webhook(app.context, LOCAL, "report", "hook", {})


async def test_the_secret_of_a_document_is_not_stored_with_its_webhook(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting(triggers=[hook()]))
        assert SECRET not in repr(await app.store.entries.list("webhook"))


async def test_a_webhook_is_deleted_with_its_document(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[hook()]))
        with pytest.raises(WebhookTaken):
            await app.save(noting("other", triggers=[hook()]))
        assert [entry.id for entry in await app.workflows()] == ["report"], "what is refused is not saved"
        await app.save(noting(triggers=[hook(path="bugs")]))
        assert await refused(app, "issues", BODY, standard(clock.now()))
        assert (await app.webhook("bugs", BODY, standard(clock.now()))).started is not None
        await app.save(noting(triggers=[hook(path="bugs", enabled=False)]))
        assert await refused(app, "bugs", BODY, standard(clock.now()))


async def test_input_of_the_document_overrides_input_of_the_call(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting(triggers=[hook(scheme="github", initialData={"role": "guest"})]))
        body = b'{"role": "admin", "n": 1}'
        received = await app.webhook("issues", body, github(body=body))
        assert received.started is not None
        assert (await app.open(received.started)).state.setup.input == {"role": "guest", "n": 1}


async def test_bodies_of_unsupported_types_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting(triggers=[hook(scheme="github")]))
        with pytest.raises(BodyTooLarge):
            await app.webhook("issues", b"x" * (app.settings.server.webhook_bytes_max + 1), {})
        for body in (b"{", b"\xff", b"[" * 5000, b"NaN"):
            with pytest.raises(CallerError):
                await app.webhook("issues", body, github(body=body))
        assert await app.executions() == []
    with pytest.raises(BodyInvalid):
        read_body(b"<a/>", "application/xml")
    with pytest.raises(BodyInvalid):
        read_body(b"&".join(b"a=1" for _ in range(1001)), "application/x-www-form-urlencoded")
    assert read_body(b"a=1&b=%C3%BC", "application/x-www-form-urlencoded") == {"a": "1", "b": "ü"}
    assert read_body(b"", "") == {}


def test_signatures_follow_the_standard() -> None:
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    signature = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b'{"a": {"x": 1, "x": 2}}', "application/json"), (b"x=1&y=2&x=3", "application/x-www-form-urlencoded")],
)
def test_a_body_with_a_duplicate_key_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(BodyInvalid, match="the key 'x' is there twice"):
        read_body(body, kind)
