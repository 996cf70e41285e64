"""The tests: each folder asks one question (STYLE section 5)."""
