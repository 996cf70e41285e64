"""`%load_ext durable_nb`: the magics come, and go again."""
