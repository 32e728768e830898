"""Saved workflows: reading, checking, revisions, sources, built-in workflows, saved agents, and uses."""
