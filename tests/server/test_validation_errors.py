"""Invalid requests are answered with the reason and a hint."""

from __future__ import annotations

import pytest

from pointsman.server.problems import over_http
from tests.server.conftest import Served
from tests.server.flows import CHAIN

BODY = "The body takes input, sessionId"
ONE = "/api/workflows/executions"
DOCS = "/api/docs describes the parameters and the body of each operation."


@pytest.mark.parametrize(
    ("asked", "says", "hint"),
    [
        ("POST /api/workflows/chain/execute {'inputs': {}}", "body/inputs: there is no field 'inputs'", "Did you mean"),
        ("POST /api/workflows/chain/execute {'zzz': {}}", "body/zzz: there is no field 'zzz'", BODY),
        ("POST /api/workflows/chain/execute []", "body: it must be an object, {…}", BODY),
        ("POST /api/workflows/chain/execute", "body: no body was sent", BODY),
        ("POST /api/workflows/chain/execute {", "the body is not JSON: Expecting", "Send JSON"),
        ("POST /api/schedules {'cron': '* * * * *'}", "body/workflow: 'workflow' is missing", "workflow (required), "),
        ("POST /api/schedules {'workflow': 'chain'}", "body: give exactly one of", "The body takes workflow"),
        ("GET /api/workflows?limit=9999", "query/limit: Input should be less", DOCS),
        ("GET /api/workflows/a%2Fb", "there is nothing at this address", "/api/docs lists every address."),
        ("PATCH /api/me", "method 'PATCH' is not allowed at this address", "The header `Allow`"),
        (f"GET {ONE}/exec-none", "there is no execution 'exec-none' here", f"`GET {ONE}` lists the executions."),
    ],
)
async def test_a_validation_error_states_the_accepted_values(served: Served, asked: str, says: str, hint: str) -> None:
    await served.save(CHAIN)
    method, address, *body = asked.split(" ", 2)
    headers = {"content-type": "application/json"}
    content = "".join(body).replace("'", '"').encode()
    reply = await served.client.request(method, address, content=content, headers=headers)
    told = reply.json()
    assert told["detail"].startswith(says), told
    assert hint in told["hint"], told


@pytest.mark.parametrize(
    ("at_a_prompt", "told"),
    [
        ("`pointsman show exec-1.2` tells.", f"`GET {ONE}/exec-1.2` tells."),
        ("`pointsman show` tells.", f"`GET {ONE}/ID` tells."),
        ("`pointsman list` shows, `pointsman list --json` too.", f"`GET {ONE}` shows, `GET /api/sessions` too."),
        ("`pointsman fork exec-1 --at 3`", f"`POST {ONE}/exec-1/fork`"),
        ("`pointsman secrets set DESK`, or …", "`PUT /api/secrets/DESK`, or …"),
        ("`pointsman keys revoke ada`, `pointsman verify`", "`pointsman keys revoke ada`, `pointsman verify`"),
    ],
)
def test_a_hint_with_a_command_names_the_equivalent_operation(at_a_prompt: str, told: str) -> None:
    assert over_http(at_a_prompt) == told
