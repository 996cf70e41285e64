"""Models: what `Agent(llm=...)` takes, and the one that plays a script offline."""
