"""What `Agent(llm=...)` takes, and in which words the rest is refused."""

from __future__ import annotations

import ast
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from durable_nb import InvalidInput, ScriptedModel
from durable_nb.llm.adopt import as_model
from durable_nb.llm.named import MODULES


def test_an_object_with_complete_is_itself():
    model = ScriptedModel(["hello"])
    assert as_model(model) is model


def test_a_name_is_its_models_name():
    for name in ("openai:gpt-5", "anthropic:claude-sonnet-4-5", "gateway/openai:gpt-5"):
        model: Any = as_model(name)
        assert model.name == name
        assert repr(model) == f"HostedModel({name!r})"


@pytest.mark.parametrize(
    ("llm", "words"),
    [
        ("opnai:gpt-5", "did you mean openai"),
        ("zzzz:gpt-5", "no provider that is known; write PROVIDER:MODEL, as in openai:gpt-5"),
        ("openai:", "names no model"),
        ("gpt-5", "did you mean openai:gpt-5"),
        ("claude-sonnet-4-5", "did you mean anthropic:claude-sonnet-4-5"),
        ("", "PROVIDER:MODEL"),
        ("openai-compatible:qwen3", "write openai-compatible:MODEL@http"),
        ("openai-compatible:qwen3@ftp://127.0.0.1", "has no address"),
        ("openai-compatible:@http://127.0.0.1/v1", "names no model"),
        ("openai-compatible:m@http://127.0.0.1:99999/v1", "has no address"),
        (ScriptedModel, "is a class; make a model of it: llm=ScriptedModel(...)"),
        (object(), "is no model; pass a name"),
        (None, "is no model; pass a name"),
    ],
)
def test_what_is_no_model_is_refused_with_what_was_meant(llm: object, words: str):
    with pytest.raises(InvalidInput, match=r".") as refused:
        as_model(llm)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://me:hunter22@host/v1", "http://host/v1?key=hunter22", "http://hunter22@host"]
)
def test_an_address_with_a_key_in_it_is_refused_without_showing_it(url: str):
    with pytest.raises(InvalidInput, match="OPENAI_COMPATIBLE_API_KEY") as refused:
        as_model(f"openai-compatible:m@{url}")
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temprature": 0}, "did you mean temperature"),
        ({"api_key": "sk-1234567"}, "under 'api_key'"),
        ({"extra_headers": {"Authorization": "x"}}, "under 'Authorization'"),
        ({"extra_headers": {"X-Auth": "Bearer abcdef"}}, "under 'X-Auth'"),
        ({"extra_body": {"hosts": [{"api_key": "abcdef"}]}}, "under 'api_key'"),
        ({"extra_body": {"hosts": ["x", "Bearer abcdef"]}}, "under 'hosts'"),
        ({"extra_body": {"url": "http://host/?k=of-the-environment"}}, "under 'url'"),
        ({"max_retries": -1}, "from 0 on"),
        ([("temperature", 0)], "is a mapping"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: Any, words: str, monkeypatch):
    monkeypatch.setenv("SOME_AUTHORIZATION", "of-the-environment")
    with pytest.raises(InvalidInput, match=r".") as refused:
        as_model("openai:gpt-5", settings)
    assert words in str(refused.value)
    assert "sk-1234567" not in str(refused.value)
    assert "abcdef" not in str(refused.value)


def test_settings_of_one_provider_are_taken():
    model: Any = as_model("openai:gpt-5", {"openai_service_tier": "flex", "temperature": 0})
    assert model.settings == {"openai_service_tier": "flex", "temperature": 0}


def test_settings_are_refused_for_a_model_that_has_its_own():
    with pytest.raises(InvalidInput, match="has its own"):
        as_model(ScriptedModel(["hi"]), {"temperature": 0})


def test_a_provider_whose_library_is_missing_names_what_to_install(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "durable_nb.llm.named.find_spec", lambda name: None if name == "groq" else found(name)
    )
    with pytest.raises(InvalidInput, match=r"pip install 'pydantic-ai-slim\[groq\]'"):
        as_model("groq:llama-3.3-70b")
    monkeypatch.setattr("durable_nb.llm.named.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'durable_nb\[models\]'"):
        as_model("openai:gpt-5")


def test_every_provider_of_pydantic_ai_is_known():
    """But for those that serve no chat: voices, embeddings and decisions."""
    import pydantic_ai.providers

    tree = ast.parse(Path(pydantic_ai.providers.__file__).read_text())
    theirs = {
        pattern.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "infer_provider_class"
        for pattern in ast.walk(node)
        if isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant)
    }
    others = {"elevenlabs", "voyageai", "sentence-transformers"}
    assert theirs - others - set(MODULES) == {"openai-decisions", "google-decisions"}
    assert set(MODULES) - theirs == {"openai-compatible"}


def test_a_model_is_pickled_as_its_name_and_settings(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-a-pickle")
    model = as_model("openai:gpt-5", {"temperature": 0})
    for module in (pickle, cloudpickle):
        packed = module.dumps(model)
        assert b"sk-never-in-a-pickle" not in packed
        again = pickle.loads(packed)
        assert (again.name, again.settings) == ("openai:gpt-5", {"temperature": 0})


def test_naming_a_model_imports_nothing_of_a_provider():
    """Also not `import durable_nb`, nor an agent that plays a script."""
    code = (
        "import sys; from durable_nb import Agent, ScriptedModel, MemoryCheckpointer\n"
        "Agent('a', ScriptedModel(['hi']), checkpointer=MemoryCheckpointer()).run('hello')\n"
        "from durable_nb.llm.adopt import as_model\n"
        "for name in ('openai:gpt-5', 'anthropic:c', 'google:g', 'openai-compatible:m@http://h/v1'):\n"
        "    as_model(name)\n"
        "print(sorted({'openai', 'anthropic', 'google.genai', 'pydantic_ai', 'httpx', 'httpx2'}\n"
        "             & set(sys.modules)))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"
