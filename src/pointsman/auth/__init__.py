"""Who may do what: callers and their keys, logins, policy, sharing, secrets, rate limits, and the audit log."""
