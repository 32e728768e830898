"""HTTP server: the functions of `app` as an API with access control and event streams, without logic of its own."""
