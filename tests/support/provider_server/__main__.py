"""A provider in a process of its own: `python -m tests.support.provider_server MODULE:SCRIPT`.

It prints its address and answers until its standard input ends; then it prints what it refused.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from tests.support.provider_server import ProviderServer, at_random


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.support.provider_server")
    parser.add_argument("script", metavar="MODULE:SCRIPT")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each event")
    parser.add_argument("--seed", type=int, help="fail at random")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    module, _, name = given.script.partition(":")
    script = getattr(import_module(module), name)
    troubles = None if given.seed is None else at_random(given.seed)
    with ProviderServer(script, delay=given.delay, troubles=troubles, port=given.port) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    print(f"{len(server.requests)} requests, {len(server.answered)} answered, {server.refused}")


if __name__ == "__main__":
    main()
