"""Crash tests: does it hold when a process is really gone?"""
