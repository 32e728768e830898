"""The HTTP API, mounted into an application of the user."""

from __future__ import annotations

import httpx2
import pytest
from fastapi import FastAPI

from pointsman import Pointsman, Workflow
from pointsman.client.client import Client
from pointsman.server.application import mounted_application
from pointsman.settings import Settings

pytestmark = pytest.mark.integration


async def test_the_api_answers_below_the_path_of_its_mount() -> None:
    wf = Workflow.build("order", output="result")
    wf.transform("double", set={"result": "n * 2"})
    async with Pointsman("memory:", settings=Settings()) as app:
        own = FastAPI()

        @own.get("/own")
        def own_route() -> str:
            return "mine"

        own.mount("/flows", mounted_application(app, is_local=True))
        transport = httpx2.ASGITransport(app=own)
        async with Client("http://localhost/flows", transport=transport) as client:
            assert (await client.health())["status"] == "ok"
            await client.save(wf.to_dict())
            execution = await client.start("order", {"n": 4})
            assert await execution.output() == 8
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            assert (await http.get("/own")).json() == own_route()
            assert (await http.get("/flows/api/nothing")).status_code == 404


async def test_a_mounted_api_requires_keys_unless_it_is_local() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        own = FastAPI()
        own.mount("/flows", mounted_application(app))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=own), base_url="http://localhost") as http:
            assert (await http.get("/flows/api/workflows")).status_code == 401
