"""The runtime: performs what the engine decides, in this process, for one store.

LocalRuntime ─▶ Driver (one per execution) ─▶ Commits ─▶ store
     │              ├─▶ Timers, LocalAttempt (executors), ChildExecutions
     │              └─▶ Feed ─▶ watchers
     ├─▶ Leader          resumes executions without a caller; one per store
     ├─▶ Passivation     drops idle executions from memory
     └─▶ ForeignWriters  gives way to other processes that write to the same execution
"""
