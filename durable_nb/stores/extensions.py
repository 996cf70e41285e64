"""Types of values that packages above know how to store: loaded when the first one is met."""

from importlib import import_module

from durable_nb.model.values import Extension, extend


def _frames() -> Extension:
    extension: Extension = import_module("durable_nb.views.parquet").EXTENSION
    return extension


def register() -> None:
    """Let pandas DataFrames be stored, and be read by whoever opens a store."""
    extend("$frame", "pandas.DataFrame", _frames)
