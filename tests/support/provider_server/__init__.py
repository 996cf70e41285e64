"""A model's provider on loopback: real HTTP, real wire formats, answers from a script.

It judges every request as the provider would and fails when it is told to. One module a wire
format; `server` knows none of them.
"""

from tests.support.provider_server.script import Said, asks, says
from tests.support.provider_server.server import ProviderServer
from tests.support.provider_server.troubles import Trouble, at_random

__all__ = ["ProviderServer", "Said", "Trouble", "asks", "at_random", "says"]
