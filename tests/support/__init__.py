"""What the suites share: a ledger of effects, stores, providers that mind their rules, children."""
