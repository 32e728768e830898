"""Turns: what was said in one execution of a conversation belongs to its session."""

from __future__ import annotations

from pointsman.engine.state import ExecutionState
from pointsman.journal.store import Store


async def save_turn(store: Store, state: ExecutionState) -> None:
    """A completed turn is added to its session, which it may close. Safe to say again after a crash."""
    if state.session is None or state.parent is not None or state.status != "completed":
        return
    known = state.options.get("history")
    messages = state.root.data.root.get("messages")
    if not isinstance(known, int) or not isinstance(messages, list):
        return
    await store.sessions.append(state.session, tuple(messages[known:]), after=known)
    if state.closes_session:
        await store.sessions.close(state.session)
