"""Web pages as plain text."""
