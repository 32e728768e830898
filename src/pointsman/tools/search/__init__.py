"""Web search: one tool for the search engine that the operator configures."""
