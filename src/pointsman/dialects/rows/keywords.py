"""Keywords and defaults of the rows dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pointsman.dialects.foreign_fields import FieldWords

WORDS: Final = FieldWords(
    {
        "isConversational": ("isConversational", "is_conversational"),
        "entrypointNodeId": ("entrypointNodeId", "entrypoint_node_id"),
        "workflowId": ("workflowId", "workflow_id"),
        "nodeType": ("nodeType", "node_type"),
        "nodeName": ("nodeName", "node_name"),
        "agentId": ("agentId", "agent_id"),
        "sourceNodeId": ("sourceNodeId", "source_node_id"),
        "targetNodeId": ("targetNodeId", "target_node_id"),
        "conditionType": ("conditionType", "condition_type"),
        "conditionValue": ("conditionValue", "condition_value"),
    }
)

NODE_TYPES: Final[Mapping[str, str]] = {
    "AGENT": "agent",
    "TOOL_EXECUTOR": "tool_executor",
    "HUMAN": "human",
    "HUMAN_HANDOFF": "human",
}

HANDOFF: Final = "human_handoff"
"""Reserved name of the node to which execution continues after a limit is exceeded."""

LIMITS: Final[Mapping[str, int | str]] = {"steps": 15, "executionTime": "90s"}
"""The dialect's default limits."""
