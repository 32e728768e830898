"""Mail by the operator's server."""
