"""`%durable pending`: every run that waits for a person or died, oldest first.

`page` says what there is to show, `row` is a run with its buttons, and `card` puts it together.
"""
