"""Pure functions over a run's log: everything that is decided is decided here (DESIGN section 2)."""
