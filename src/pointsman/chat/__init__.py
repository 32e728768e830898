"""Chat: sessions, messages, memories, and workflows as partners in a conversation."""
