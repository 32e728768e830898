"""Workflows that come with us: on the shelf beside the saved ones, read-only, there to be run, called and cloned."""
