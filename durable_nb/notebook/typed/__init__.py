"""What people type: lines of magics, and the prompts and queries under them.

`grammar` has every command and option as data; `parse` reads a line by it, `manual` explains it and
`completion` offers what comes next. `prompt` fills in a cell's body, `tables` knows what a query can
name, `hints` says what was meant.
"""
