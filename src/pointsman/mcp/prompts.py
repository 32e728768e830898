"""Prompts that clients offer to people: design a workflow, change one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp.types import INVALID_PARAMS, GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from mcp import MCPError
from pointsman.authoring.guide import GUIDE
from pointsman.authoring.workbench import Workbench
from pointsman.errors import PointsmanError

PROMPTS: Final = (
    Prompt(
        name="design_workflow",
        title="Design a workflow",
        description="From words to a saved workflow: drafted, checked, mended, saved.",
        arguments=[PromptArgument(name="goal", description="What it shall do.", required=True)],
    ),
    Prompt(
        name="change_workflow",
        title="Change a workflow",
        description="By typed operations, shown before they are saved.",
        arguments=[
            PromptArgument(name="workflow", description="Its id.", required=True),
            PromptArgument(name="wish", description="What shall be different.", required=True),
        ],
    ),
)


async def given(bench: Workbench, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Raises `MCPError` for prompts that are not there, and arguments that are missing."""
    prompt = next((one for one in PROMPTS if one.name == name), None)
    if prompt is None:
        raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:100]!r}")
    missing = [one.name for one in prompt.arguments or [] if one.name not in arguments]
    if missing:
        raise MCPError(INVALID_PARAMS, f"the prompt {name!r} needs {', '.join(missing)}")
    if name == "design_workflow":
        text = (
            f"Design a Pointsman workflow: {arguments['goal']}\n\nWrite it, call check_workflow, mend every error, "
            f"and call save_workflow once there is none. Then show its picture.\n\n{GUIDE}"
        )
    else:
        try:
            source, _ = await bench.source(arguments["workflow"])
            document = await bench.app.documents.here(lambda: source.document, chars=source.chars, of=source.digest)
        except PointsmanError as why:
            raise MCPError(INVALID_PARAMS, f"{why}. {why.hint}".strip()) from None
        text = (
            f"Change the Pointsman workflow {arguments['workflow']!r}: {arguments['wish']}\n\nCall edit_workflow, look "
            "at the problems that are new, and call it again with apply=true once there is no error.\n\n"
            f"It is now:\n\n{document.text}"
        )
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])
