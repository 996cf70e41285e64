"""Where logs are kept: one protocol, and backends that do not know one another (DESIGN section 7)."""
