"""HTTP to addresses that come from data: where a call may go is decided by the operator, never by who wrote the data.

Call ─▶ Outgoing.send ─▶ Door: scheme, port, user? ─▶ resolve ─▶ every address checked ─▶ connect to a checked one
              ▲                                                                                  │
              └──────── a redirect passes the same door ◀── answer: bounded in time and bytes ◀──┘
"""
