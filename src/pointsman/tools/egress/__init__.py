"""Egress transport: HTTP to addresses that come from data. The operator decides where a call may go, not the data.

Call ─▶ Outgoing.send ─▶ Door: scheme, port, user? ─▶ resolve ─▶ every address checked ─▶ connect to a checked one
              ▲                                                                                  │
              └────── redirects pass the same checks ◀── response: limited in time and bytes ◀───┘
"""
