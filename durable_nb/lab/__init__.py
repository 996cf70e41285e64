"""Crashes on purpose: real children, killed where you say."""

from durable_nb.lab.crashes import Crash, crash
from durable_nb.lab.points import When

__all__ = ["Crash", "When", "crash"]
