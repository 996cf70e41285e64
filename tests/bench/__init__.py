"""Bench: what does it cost? Tables for people; nothing here passes or fails by the clock."""
