"""`%durable show`: a run, a page of its steps, and what each opens to.

`page` and `steps` say what there is to show, `details` what a step opens to, `diff` how two steps
compare; `html` draws it, `controls` are what can be clicked, and `card` puts it together.
"""
