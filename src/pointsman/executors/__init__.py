"""Hands: one executor per kind of work. Each performs one attempt of one step and reports what came of it."""
