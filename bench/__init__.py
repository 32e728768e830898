"""Measurements: what a node costs, by shape, size and store, with growth. `make bench`, or `python -m bench --help`."""
