"""Peers in environments of their own: one module for each, with the same shapes through its public API."""
