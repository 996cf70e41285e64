"""What of an agent is not as it was: its prompt, its model, its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from durable_nb.model.values import Json, loads


def changes(before: str, now: str) -> tuple[str, ...]:
    """The names of what differs between two definitions of an agent, JSON texts as they are
    stored: `prompt`, `model`, `tool NAME`."""
    return () if before == now else tuple(_differences(loads(before), loads(now)))


def _differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[str]:
    if before.get("system_prompt") != now["system_prompt"]:
        yield "prompt"
    if any(before.get(part) != now.get(part) for part in ("model", "settings")):
        yield "model"
    earlier: Mapping[str, Json] = before.get("tools", {})
    for name in sorted({*earlier, *now["tools"]}):
        if earlier.get(name) != now["tools"].get(name):
            yield f"tool {name}"
