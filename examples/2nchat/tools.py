"""The tools of the chat as Python functions, over records in memory. A real CRM stands behind the same signatures."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from pointsman import tool

Record: TypeAlias = dict[str, Any]

RECORDS: list[Record] = [
    {"object": "company", "name": "Nordlys Shipping", "city": "Oslo", "stage": "Open"},
    {"object": "company", "name": "Fjordkraft", "city": "Oslo", "stage": "Open"},
    {"object": "company", "name": "Havn AS", "city": "Bergen", "stage": "Won"},
    {"object": "opportunity", "name": "Nordlys: a second ship", "stage": "Offer"},
]


@tool(idempotent=True)
async def find_records(object: str, filter: str = "") -> list[Record]:
    """Find records of our CRM. `filter` names fields and their values: `city = Oslo and stage = Open`."""
    wanted = [("object", object), *re.findall(r"(\w+) = (\w+)", filter)]
    return [record for record in RECORDS if all(record.get(field) == value for field, value in wanted)]


@tool(idempotent=True)
async def update_record(object: str, name: str, fields: Record) -> Record:
    """Change one record of our CRM, found by the beginning of its name."""
    [found] = [one for one in RECORDS if one["object"] == object and one["name"].startswith(name)]
    found.update(fields)
    return found


@tool(idempotent=True)
async def search_help(about: str) -> Record:
    """Search the product's help."""
    return {"page": "Settings > Import", "text": f"Help about {about}: drop a CSV file there."}


@tool(idempotent=True)
async def external_research(question: str) -> Record:
    """Research a question in the news."""
    return {"found": [{"source": "Harbour Post", "text": f"{question} A battery park is planned for 2027."}]}


TOOLS = (find_records, update_record, search_help, external_research)
