"""Planted bugs: would our tests notice? (STYLE section 5)"""
