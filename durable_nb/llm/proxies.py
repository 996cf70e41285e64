"""What HTTP_PROXY and its like mean for a model's client: nothing where the server is on loopback,
and elsewhere a failure names the variable, since what failed may have been the proxy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pydantic_ai.models import Model


def spare_loopback(model: Model) -> None:
    """Let a client that was just made ask a server of this machine itself."""
    http = client_under(model)
    if http is not None and _is_loopback(urlsplit(model.base_url or "").hostname or ""):
        http._mounts.clear()  # its proxies, by pattern


def proxied(model: Model) -> str:
    """`through the proxy of HTTP_PROXY, http://10.0.0.1:3128`, without its password; empty if the
    model is asked without a proxy."""
    http, address = client_under(model), getattr(model, "base_url", None)
    if http is None or not address:
        return ""
    url = http.base_url.join(address)
    if http._transport_for_url(url) is http._transport:
        return ""
    return next(_variables(url.scheme), "through a proxy")


def client_under(model: Model) -> Any:
    """The HTTP client under a provider's own, where it is known: of OpenAI's and Anthropic's, and of
    Google's."""
    client = getattr(model, "client", None)
    for inner in (client, getattr(client, "_api_client", None)):
        for name in ("_client", "_async_httpx_client"):
            http = getattr(inner, name, None)
            if hasattr(http, "_mounts") and hasattr(http, "_transport_for_url"):
                return http
    return None


def _variables(scheme: str) -> Iterator[str]:
    """What may have set it, the one that counts first."""
    for name in (f"{scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if address := os.environ.get(variable):
                yield f"through the proxy of {variable}, {_bare(address)}"


def _bare(address: str) -> str:
    """The address without user and password: its host and its port."""
    scheme, _, rest = address.rpartition("://")
    return f"{scheme or 'http'}://{rest.rpartition('@')[2].partition('/')[0]}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False
