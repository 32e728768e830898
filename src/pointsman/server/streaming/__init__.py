"""Live streams to browsers and other clients of the API: SSE broker, live feed, encoding of events."""
