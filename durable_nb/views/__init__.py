"""Runs as pandas DataFrames and DuckDB tables, read without disturbing who writes."""
