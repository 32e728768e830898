"""Executions: start, answer, queries, views, timeline, fork, migrate, replay, dry run, limits, live events."""
