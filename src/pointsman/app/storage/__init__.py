"""What is kept, for how long, and where it goes: deletion, retention, export and import."""
