"""Frozen histories: journals of every release, which all later versions must fold, resume and finish."""
