"""Mail through the operator's server."""
