"""Crashes on purpose: real children, killed where you say."""
