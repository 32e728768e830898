"""Decision rules: what a report means for an execution. `dispatch.decide` is the entry point.

    dispatch ─▶ rule for the report ─▶ transitions in a queue ─▶ enter_node · exit_step · failure_handling
                                                                    └─▶ start_node ─▶ one rule per kind of action

Every rule receives a `DecisionContext`, emits events through it (they are folded at once) and enqueues transitions.
"""
