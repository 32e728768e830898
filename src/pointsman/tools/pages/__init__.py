"""Pages of the web as clean text."""
