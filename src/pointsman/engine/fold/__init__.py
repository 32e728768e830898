"""Folding: apply events to the state. `dispatch.fold` is the entry point; it needs no plan, no clock and no settings.

steps · arrivals · scopes        results of steps, parked and held arrivals, writes of branches
human_tasks · outbox · counters  open gates, messages owed to others, counts of open and running steps
lifecycle                        status of the execution, limits, compensation, forks
"""
