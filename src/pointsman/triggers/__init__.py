"""Triggers: what starts executions, or wakes them, by itself.

    schedule ─ due ─────────┐
    webhook  ─ signed call ─┼─▶ start, under an id made of the trigger and its cause: twice is once
    event    ─ published ───┘      └▶ and events reach the executions that wait for them

What is configured are entries of the store; who did what is in the journals of the executions. A start that is tried
again, after a crash or by another process, finds the execution it would make.
"""
