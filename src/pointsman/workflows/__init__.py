"""Saved workflows: reading, checking, revisions, sources, built-in ones, saved agents, and what each calls."""
