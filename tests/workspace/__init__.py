"""A directory and its tools: confined, killed, compared."""
