"""Contract tests: does every store keep what the protocol promises, and every run with it?"""
