"""Folding: apply events to the state. `dispatch.fold` is the entry point; it needs no plan, no clock and no settings.

steps · arrivals · scopes        what open steps hold, what waits at nodes, what branches wrote
human_tasks · outbox · counters  open gates, messages owed to others, counts of open and running steps
lifecycle                        status of the execution, limits, compensation, forks
"""
