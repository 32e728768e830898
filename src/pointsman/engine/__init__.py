"""The pure core: events are the truth, state is derived, decisions are made once.

report ─▶ decide(plan, state, report) ─▶ Decision(events, commands)
                                            │           └─▶ the runtime performs them and sends reports
                                            └─▶ journal row ─▶ state = fold(events)

compile/   definition → plan; the only part that reads definitions
decide/    one module per rule; reads plan and state, emits events and commands
events/    what a journal row holds
fold/      one module per part of the state; applies events, never sees a plan
"""
