"""Triggers: start executions, or wake them, automatically.

    schedule ─ due ─────────┐
    webhook  ─ signed call ─┼─▶ start, under an id derived from the trigger and its cause: repeated starts are one
    event    ─ published ───┘      └▶ and events reach the executions that wait for them

The configuration is stored in entries of the store; what triggers did is in the journals of the executions. A start
that is retried, after a crash or by another process, finds the execution that already exists.
"""
