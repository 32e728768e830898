"""Who may do what: callers, the keys they show, and the one place that decides."""
