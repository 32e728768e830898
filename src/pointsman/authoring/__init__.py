"""Design of workflows: typed operations on a definition, and the verbs with which agents and people use them.

operations ─ apply ─▶ document ─ check ─▶ problems (new, gone)        pure, except for the check
    ▲                                       │
    └──────── words, a model ◀──────────────┘                         design, edit by words
"""
