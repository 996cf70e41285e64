"""Unit tests: is each rule right? Plain calls and tables of cases; no disk."""
