"""Executors: one per kind of work. Each performs one attempt of one step and reports its outcome."""
