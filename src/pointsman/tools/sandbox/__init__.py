"""Programs that nobody here vouches for, held by the operating system.

    find_box ─▶ Box ── command_line(Job) ──▶ argv ──▶ bounded (subprocess tools) · Interpreter (code nodes)
                 ├─ bubblewrap: an empty root, namespaces of its own, a seccomp filter, rlimits
                 └─ landlock:   no files but those named, no rights, a stricter seccomp filter, rlimits

A box is tried before it is used: what cannot be had is refused (`sandbox-missing`), and there is nothing behind it.
What a program may use (`Bounds`) is held by the kernel; how long it may take, and how much it may say, by its parent.
"""
