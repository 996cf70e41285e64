"""The local model itself, on this machine: what it answers, and that it can be killed and resumed."""
