"""The notebook surface: magics, cards, handles. They parse, call one function, return an object.

What is typed comes in by `extension`, `magics` and `crash`; `typed` reads it, and `cell` and
`commands` do it. A `desk` holds a shell's runs: `local` drives one, `faces` shows it, `handle` is
what the next cell gets. What is shown is data first: `portrait`, `timeline` and `changed` say it in
`parts`, `render` and `markup` draw those, `cards` and `screen` put them in a cell, `pulse` keeps them
up to date. `gates` says what can be decided, `asking` asks, `waiting` waits; `inbox` and `inspector`
are what `%durable pending` and `%durable show` open.
"""
