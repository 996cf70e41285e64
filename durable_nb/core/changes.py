"""What of an agent is not as it was: its prompt, its model, its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from durable_nb.core.compare import Change, How
from durable_nb.core.text import literal
from durable_nb.model.values import loads, thaw


def changes(before: str, now: str) -> tuple[str, ...]:
    """The names of what differs between two definitions of an agent, JSON texts as they are
    stored: `prompt`, `model`, `tool NAME`."""
    return tuple(change.key for change in differences(before, now))


def differences(before: str, now: str) -> tuple[Change, ...]:
    """The same with the texts of what differs: a prompt, a model with its settings, a tool's
    source."""
    return () if before == now else tuple(_differences(thaw(loads(before)), thaw(loads(now))))


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    if before.get("system_prompt") != now["system_prompt"]:
        yield _change("prompt", before.get("system_prompt"), now["system_prompt"])
    if any(before.get(part) != now.get(part) for part in ("model", "settings")):
        yield _change("model", _model(before), _model(now))
    earlier: Mapping[str, str] = before.get("tools", {})
    for name in sorted({*earlier, *now["tools"]}):
        if earlier.get(name) != now["tools"].get(name):
            yield _change(f"tool {name}", earlier.get(name), now["tools"].get(name))


def _change(key: str, before: str | None, after: str | None) -> Change:
    how: How = "added" if before is None else "removed" if after is None else "changed"
    return Change(key, how, before, after)


def _model(parts: Mapping[str, Any]) -> str | None:
    """A model and its settings, a line each."""
    if "model" not in parts:
        return None
    settings: Mapping[str, object] = parts.get("settings") or {}
    lines = (f"{name} = {literal(value)}" for name, value in sorted(settings.items()))
    return "\n".join((str(parts["model"]), *lines))
