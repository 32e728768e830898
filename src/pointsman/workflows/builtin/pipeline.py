"""Which workflow the pipeline is: the saved one of that name, and where none is saved the one that comes with us."""

from __future__ import annotations

from pointsman.context import AppContext
from pointsman.workflows.builtin.documents import PREFIX
from pointsman.workflows.library import LIBRARY


async def pipeline_of(app: AppContext) -> str:
    """The id of the workflow that the setting `pipeline` names. One that is not there at all stays as it is named."""
    name, known = app.settings.pipeline, app[LIBRARY].workflows
    shipped = f"{PREFIX}{name}"
    return shipped if await known.find(name) is None and await known.find(shipped) is not None else name
