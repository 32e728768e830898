"""Keywords and defaults of the graph dialect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from pointsman.dialects.readers import NO_WORDS, member
from pointsman.values import Json

WORDS: Final = NO_WORDS
"""Each field has one spelling."""

NODE_TYPES: Final[Mapping[str, str]] = {
    "agent": "agent",
    "fanout": "parallel",
    "loop": "loop",
    "conditional": "decision",
    "merge": "join",
    "start": "start",
}

LIMITS: Final[Mapping[str, tuple[str, Json]]] = {
    "steps": ("max_steps", 1000),
    "executionTime": ("timeout_ms", 300_000),
    "parallel": ("max_parallel", 5),
}
"""Native limit -> the dialect's word and default."""

ITERATIONS: Final = 3
"""Iterations of a loop if neither it nor the document names `max_iters`."""

BARRIER_S: Final = 60
"""Time for which a merge waits for expected keys."""

ITEM: Final = "current_fanout_item"

STRATEGIES: Final[Mapping[str, str]] = {
    "concat_text": "concat",
    "collect_list": "list",
    "merge_dict": "merge",
    "stitch": "stitch",
}
CONCAT_SEPARATOR: Final = " | "
STITCH_SEPARATOR: Final = "\n\n---\n\n"
STITCH_HEADER: Final = "### {key}"

CHAINED: Final = "latest ?? goal"
"""Input of an agent without inputs: the latest result, at the start the goal."""

SOME_ITEMS: Final = "state.fanout_items or state.targets or config.reporter_ids"
"""Where a fan-out without items takes them from."""
NO_ITEMS: Final = f"{SOME_ITEMS} or null"
ONE_ITEM: Final = f'{SOME_ITEMS} or ["default"]'

OUTPUT: Final = "final ?? drafts ?? latest"
"""Output of the execution."""

_CONDITION_RESULT: Final = re.compile(r"([A-Za-z_][\w-]*) condition result\b|\"[^\"]*\"|'[^']*'")
_UI_CLUSTER: Final = re.compile(r"[*_\s]*ui[*_\s]*cluster[*_\s]*", re.IGNORECASE)
_TEMPLATE_NAME: Final = re.compile(r"\{([A-Za-z_]\w*)(?:\[([^\]{}]+)\])?\}")


def with_results(condition: str) -> str:
    """Replace `X condition result`, the dialect's term for the decision of the conditional X."""

    def rewrite(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else branch_is("true", found[1])

    return _CONDITION_RESULT.sub(rewrite, condition)


def branch_is(branch: str, node: str) -> str:
    return f'{member("nodes", node)}.branch == "{branch}"'


def is_ui_cluster(condition: Json) -> bool:
    """Return whether an edge is one that the original editor draws around a group; such edges are not control flow."""
    return isinstance(condition, str) and _UI_CLUSTER.fullmatch(condition) is not None


def state_path(path: str) -> str:
    """Return the path below the state, without a redundant prefix."""
    return path.removeprefix("$.").removeprefix("state.")


def expression_of(value: Json) -> str:
    """Return an input as an expression: texts are paths, other values are literals."""
    return with_results(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def outputs_path(node_id: str) -> str:
    return member("outputs", node_id)


def template_expression(template: str) -> str:
    """Return a `custom_template` ({items}, {count}, {items[key]}) as an expression over the results of the branches."""
    parts: list[str] = []
    at = 0
    for found in _TEMPLATE_NAME.finditer(template):
        value = "len(items)" if found[1] == "count" else found[1]
        if found[2] is not None:
            key = json.dumps(found[2].strip("\"'"), ensure_ascii=False)
            value = f"find(branches, b => b.key == {key}).result"
        parts += [json.dumps(template[at : found.start()], ensure_ascii=False), f"str({value})"]
        at = found.end()
    parts.append(json.dumps(template[at:], ensure_ascii=False))
    return " + ".join(part for part in parts if part != '""') or '""'
