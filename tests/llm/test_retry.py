"""Back-offs and keys as pure functions: what is waited, and what is not said."""

from __future__ import annotations

import re

import pytest

from durable_nb.llm import retry
from durable_nb.llm.retry import Failure, is_passing, pause_before, status_words
from durable_nb.llm.secrets import scrubbed


def test_the_wait_doubles_up_to_a_limit_and_half_of_it_is_chance(monkeypatch):
    monkeypatch.setattr(retry, "FIRST", 0.5)
    failure = Failure("503", passing=True)
    assert [pause_before(at, failure, 1.0) for at in (1, 2, 3, 10)] == [0.5, 1.0, 2.0, 30.0]
    assert [pause_before(at, failure, 0.0) for at in (1, 2, 3, 10)] == [0.25, 0.5, 1.0, 15.0]


def test_what_the_provider_asks_for_is_kept_to_up_to_a_limit():
    for asked, waited in ((0.0, 0.0), (7.0, 7.0), (3600.0, 60.0), (-1.0, 0.0)):
        assert pause_before(1, Failure("429", passing=True, after=asked), 0.5) == waited


def test_statuses_that_go_by_are_known_and_all_are_said_in_words():
    passing = [status for status in range(400, 600) if is_passing(status)]
    assert passing == [408, 409, 425, 429, *range(500, 600)]
    assert status_words(503) == "503 Service Unavailable"
    assert status_words(529) == "529 Overloaded"
    assert status_words(599) == "599"


@pytest.mark.parametrize(
    "said",
    [
        "key sk-abc+/def= is wrong",
        "key=sk-abc%2B%2Fdef%3D",
        "key=sk-abc%2b%2fdef%3d",
        "path sk-abc%2B/def%3D",
        "Bearer sk-abc+/def=",
        r'{"key": "sk-abc+\/def="}',
        "Basic c2stYWJjKy9kZWY9",
    ],
)
def test_a_key_is_replaced_by_its_variables_name(monkeypatch, said):
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", "sk-abc+/def=")
    assert not re.search("abc|c2stYWJj", scrubbed(said))
    assert "[SOME_PROVIDER_API_KEY]" in scrubbed(said)


def test_a_key_with_a_line_end_and_one_that_is_no_text_are_replaced(monkeypatch):
    monkeypatch.setenv("ONE_API_KEY", "sk-secret\n")
    monkeypatch.setenv("TWO_API_KEY", "caf\udce9-secret")
    assert scrubbed("sk-secret, caf%E9-secret") == "[ONE_API_KEY], [TWO_API_KEY]"


def test_of_two_keys_the_longer_is_replaced_whole(monkeypatch):
    monkeypatch.setenv("ONE_API_KEY", "sk-secret")
    monkeypatch.setenv("TWO_API_KEY", "sk-secret-and-more")
    assert scrubbed("sk-secret-and-more, sk-secret") == "[TWO_API_KEY], [ONE_API_KEY]"


def test_a_key_that_no_variable_holds_is_replaced_too():
    assert scrubbed("key sk-of-its-own is wrong", ["sk-of-its-own"]) == "key [key] is wrong"


def test_paths_and_short_values_stay_and_passwords_of_addresses_do_not(monkeypatch):
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent.sock")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann Archer")
    monkeypatch.setenv("TINY_KEY", "a")
    monkeypatch.setenv("BLANK_KEY", " " * 9)
    monkeypatch.setenv("PADDED_KEY", "   a   ")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:hunter22@host/v1")
    told = "no /tmp/agent.sock here, a pity, Ann Archer"
    assert scrubbed(told) == told
    assert "hunter22" not in scrubbed("cannot reach https://me:hunter22@host/v1")
