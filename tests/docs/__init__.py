"""Docs: do the README and the notebooks do and show what they say?"""
