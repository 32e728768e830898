"""Where an identity provider is configured people log in with it, and are told in words when that fails."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from pytest_httpserver import HTTPServer

from tests.server import flows
from tests.server.conftest import Served, serving
from tests.server.test_provider import IdentityProvider, settings
from tests.web.conftest import Opens


@pytest.fixture
def provider(httpserver: HTTPServer) -> IdentityProvider:
    one = IdentityProvider(httpserver)
    one.open()
    return one


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path, provider: IdentityProvider) -> AsyncGenerator[Served, None]:
    configured = settings(provider, label="Example ID")
    async with serving(f"sqlite:///{tmp_path}/store.db", settings=configured) as one:
        yield one


async def test_a_person_logs_in_with_the_provider_where_they_were_and_out_again(
    opens: Opens, served: Served, provider: IdentityProvider
) -> None:
    key = await served.key("root", "admin")
    assert (await served.client.post("/api/workflows", content=flows.CHAIN, headers=key)).status_code == 201
    async with opens("/executions?status=failed", lenient=True) as page:
        await page.get_by_role("link", name="Log in with Example ID").click()
        await page.wait_for_url(re.compile(r"/executions\?status=.*failed"))
        await expect(page.get_by_role("heading", name="Executions", exact=True)).to_be_visible()
        await expect(page.get_by_text("ada", exact=True)).to_be_visible()
        await page.get_by_role("link", name="Workflows").click()
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_role("heading", name="Who are you?", exact=True)).to_be_visible()
    assert len(provider.asked) == 1


async def test_who_may_not_enter_reads_why_in_their_language_and_enters_with_a_key(
    opens: Opens, served: Served, provider: IdentityProvider
) -> None:
    provider.said |= {"roles": []}
    key = (await served.key("bob", "viewer"))["authorization"].removeprefix("Bearer ")
    async with opens("/inbox", language="de", lenient=True) as page:
        await page.get_by_role("link", name="Anmelden mit Example ID").click()
        await expect(page.get_by_role("alert")).to_contain_text("dürfen hier aber nicht eintreten")
        await page.get_by_label("Schlüssel").fill(key)
        await page.get_by_role("button", name="Anmelden", exact=True).click()
        await page.wait_for_url("**/inbox")
        await expect(page.get_by_text("bob", exact=True)).to_be_visible()
