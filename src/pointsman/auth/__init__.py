"""Access control: callers, API keys, logins, policy, sharing, secrets, rate limits and the audit log."""
