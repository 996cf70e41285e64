"""Frozen data and its JSON form. Nothing here waits, fails by chance or reads a clock."""
