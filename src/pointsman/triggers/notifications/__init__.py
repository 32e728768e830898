"""Notifications: what people wait to hear (a gate opened, an execution failed), posted to addresses of the operator.

    gates that opened, executions that ended ─▶ outbox: one entry per address ─▶ post ─▶ sent │ again later │ given up

The outbox is filled from what the store says happened since it was last filled, never from what a process happens to
see: whoever dies in between fills it again. The entry of a notice is named after its cause, so it is there once.
"""
