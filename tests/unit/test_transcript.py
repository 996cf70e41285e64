"""A transcript grows without copying, and never changes what another one of its run sees."""

from __future__ import annotations

import pytest

from durable_nb import Call, Message
from durable_nb.model.transcript import Transcript

USER = Message("user", "go")
ASKED = Message("assistant", "", (Call("a", {}, "1"), Call("b", {}, "2")))
FIRST, SECOND = (Message("tool", "ok", tool_call_id=call_id) for call_id in "12")


def test_it_is_the_sequence_of_what_was_added() -> None:
    transcript = Transcript([USER]).plus([ASKED]).plus([FIRST, SECOND])
    assert list(transcript) == [USER, ASKED, FIRST, SECOND]
    assert (len(transcript), transcript[0], transcript[-1]) == (4, USER, SECOND)
    assert transcript[1:3] == (ASKED, FIRST)
    assert transcript[::-1] == (SECOND, FIRST, ASKED, USER)
    assert list(reversed(transcript)) == [SECOND, FIRST, ASKED, USER]
    for outside in (4, -5):
        with pytest.raises(IndexError, match="of 4"):
            transcript[outside]
    assert repr(Transcript([USER])) == f"Transcript([{USER!r}])"


def test_adding_to_one_leaves_the_others_as_they_were() -> None:
    base = Transcript([USER])
    left, right = base.plus([ASKED]), base.plus([FIRST])
    longer = left.plus([SECOND])
    assert [list(each) for each in (base, left, right, longer)] == [
        [USER],
        [USER, ASKED],
        [USER, FIRST],
        [USER, ASKED, SECOND],
    ]
    assert base[-1] == USER
    assert base.plus([]) is base


def test_it_is_equal_by_content() -> None:
    assert Transcript([USER, ASKED]) == Transcript([USER]).plus([ASKED])
    assert Transcript([USER]).plus([ASKED]) != Transcript([USER])
    assert Transcript([USER]) != [USER]


def test_it_counts_replies() -> None:
    transcript = Transcript([USER, ASKED])
    assert transcript.replies == 1
    assert transcript.plus([FIRST]).plus([ASKED, USER, ASKED]).replies == 3


def test_open_calls_are_those_of_the_last_reply_without_a_result() -> None:
    transcript = Transcript([USER, ASKED])
    first, second = ASKED.tool_calls
    assert transcript.open_calls() == (first, second)
    assert transcript.open_calls([FIRST]) == (second,)
    assert transcript.plus([SECOND]).open_calls() == (first,)
    assert transcript.plus([FIRST, SECOND]).open_calls() == ()
    assert transcript.plus([FIRST, SECOND]).open_calls([ASKED]) == (first, second)
    assert Transcript([USER]).open_calls() == ()


def test_it_knows_which_calls_it_has_asked_for() -> None:
    base = Transcript([USER])
    longer = base.plus([ASKED])
    other = base.plus([Message("assistant", "", (Call("a", {}, "3"),))])
    asked = [[each.has_asked(id_) for id_ in "123"] for each in (base, longer, other)]
    assert asked == [[False, False, False], [True, True, False], [False, False, True]]
    assert longer.plus([FIRST]).has_asked("1")
    assert not longer.plus([FIRST]).has_asked("")
