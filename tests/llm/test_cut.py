"""Half an answer is shown as one: on the card, in the inspector and by `durable-nb show`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from durable_nb import Agent, SQLiteCheckpointer
from durable_nb.cli import main
from durable_nb.notebook.inspector.steps import page_of, timeline_of
from durable_nb.notebook.portrait import Look, portrait
from durable_nb.notebook.render import html, text


@pytest.mark.parametrize("reason", ["length", "content_filter", "stop"])
def test_an_answer_that_was_cut_says_so_in_one_line(
    reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answers(messages: object, info: object) -> ModelResponse:
        return ModelResponse([TextPart("Half an")], finish_reason=reason)  # type: ignore[arg-type]  # one of pydantic-ai's

    with closing(SQLiteCheckpointer(tmp_path / "runs.sqlite3")) as store:
        agent = Agent("bot", FunctionModel(answers), checkpointer=store)
        assert agent.run("go", execution_id="r1").output == "Half an"
        log = store.load("r1")
    main(["show", "r1", "--store", str(tmp_path / "runs.sqlite3")])
    said, times = f"the answer was cut: {reason}", 0 if reason == "stop" else 1
    assert capsys.readouterr().out.count(said) == times
    card = portrait(log, Look())
    inspected = portrait(log, Look(), (timeline_of(log, page_of(log), "completed"),))
    assert text(card).count(said) == times  # its steps are not told
    for seen in (text(inspected), html(card), html(inspected)):
        assert seen.count(said) == 2 * times  # under the answer, and in the line of its step
