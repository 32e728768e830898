"""Operations: retention, export and import, backup, health, usage, metrics, tracing, logs."""
