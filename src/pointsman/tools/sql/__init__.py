"""Questions to databases: one statement that only reads, of databases that the operator names."""
