"""HTTP server: the functions of `app` as an API with access control and event streams, without logic of its own."""

from __future__ import annotations

from pointsman.extras import need

need("server", "The server")
