"""Which workflow the pipeline is: the saved one of that name, and where none is saved the one that comes with us."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointsman.workflows.builtin.documents import PREFIX

if TYPE_CHECKING:
    from pointsman.app import Pointsman


async def pipeline_of(app: Pointsman) -> str:
    """The id of the workflow that the setting `pipeline` names. One that is not there at all stays as it is named."""
    name, known = app.settings.pipeline, app.library.workflows
    shipped = f"{PREFIX}{name}"
    return shipped if await known.find(name) is None and await known.find(shipped) is not None else name
