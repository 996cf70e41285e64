"""Where logs are kept: one protocol, and backends that do not know one another (DESIGN section 7).

A DataFrame is stored by `views`, which is loaded when the first one is met.
"""

from importlib import import_module

from durable_nb.model.values import Extension, extend


def _frames() -> Extension:
    extension: Extension = import_module("durable_nb.views.parquet").EXTENSION
    return extension


extend("$frame", "pandas.DataFrame", _frames)
