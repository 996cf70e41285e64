"""Every store of ours keeps the contract."""

from __future__ import annotations

from tests.contract.suite import CheckpointerContract


class TestContract(CheckpointerContract):
    """Over each store of the `store` fixture."""
