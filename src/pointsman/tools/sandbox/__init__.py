"""Isolation of untrusted programs by the operating system.

    find_sandbox ─▶ Sandbox ── command_line(Job) ──▶ argv ──▶ bounded (command tools) · Interpreter (code nodes)
                 ├─ bubblewrap: an empty root, its own namespaces, a seccomp filter, resource limits
                 └─ landlock:   only listed files, no capabilities, a stricter seccomp filter, resource limits

A sandbox is tried before it is used. If none is available, programs are refused (`sandbox-missing`); there is no
fallback without isolation. The kernel enforces the limits of a program (`SandboxLimits`), except time and output, which
the parent enforces.
"""
