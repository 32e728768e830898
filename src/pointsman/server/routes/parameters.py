"""Parameters that many operations take."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Path, Query

from pointsman.app.access.callers import Caller
from pointsman.server.desk import Must

Operator = Annotated[Caller, Depends(Must("operator", "run workflows"))]
Editor = Annotated[Caller, Depends(Must("editor", "write workflows"))]
Admin = Annotated[Caller, Depends(Must("admin", "delete data"))]

Eid = Annotated[str, Path(min_length=1, max_length=100, description="The execution's id.")]
Id = Annotated[str, Path(min_length=1, max_length=300, description="`id`, `id@revision` or `id@version`.")]
Of = Annotated[str | None, Query(max_length=300, description="Only those of this workflow.")]
After = Annotated[str | None, Query(max_length=1500, description="`next` of the page before.")]
Scope = Annotated[str, Path(max_length=20, description="`execution`, `session`, `user`, `workflow` or `shared`.")]
Limit = Annotated[int, Query(ge=1, le=200, description="At most so many.")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="The same request with the same key is made once."),
]
IfMatch = Annotated[str | None, Header(max_length=200, description="The ETag it was read with: else nothing is done.")]
Dialect = Annotated[str | None, Query(max_length=20, description="The dialect of the document; absent: found out.")]
Draft = Annotated[bool, Query(description="Save it although it has errors; it cannot be run.")]
