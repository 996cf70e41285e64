"""A courier, a plane, and a network that fails on purpose."""
