"""Database queries: single read-only statements on databases that the operator names."""
