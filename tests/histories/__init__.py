"""Frozen histories: journals of every release, which must fold, and be taken up and finished, for ever."""
