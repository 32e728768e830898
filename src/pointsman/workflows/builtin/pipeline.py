"""The pipeline workflow: the saved workflow of that name, else the built-in one."""

from __future__ import annotations

from pointsman.context import AppContext
from pointsman.workflows.builtin.documents import PREFIX
from pointsman.workflows.library import LIBRARY


async def pipeline_of(app: AppContext) -> str:
    """Return the id of the workflow that the setting `pipeline` names. A name without a saved or built-in workflow is
    returned unchanged."""
    name, known = app.settings.pipeline, app[LIBRARY].workflows
    shipped = f"{PREFIX}{name}"
    return shipped if await known.find(name) is None and await known.find(shipped) is not None else name
