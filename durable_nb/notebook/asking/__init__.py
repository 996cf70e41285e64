"""What a person decides with: buttons, a form for a tool's arguments, an answer for a call in doubt.

`controls` chooses among them, `approving`, `doubting` and `deciding` are the buttons, `forms` and
`inputs` the fields, and `panel` the box that they stand in. A click's callback itself claims.
"""
