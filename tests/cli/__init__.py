"""The command `durable-nb`, as people and programs use it."""
