"""Evaluations: datasets, and runs of a workflow over all cases of a dataset, with scores."""
