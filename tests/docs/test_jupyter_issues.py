"""Forty-five troubles that others had in notebooks, and the test that keeps each from being ours.

The tests that are named exist; what does not apply says why. The numbers are those of the project's
table of real issues.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import durable_nb

TESTS = Path(__file__).parents[1]
PACKAGE = Path(durable_nb.__file__).parent
LINE = re.compile(r"(\d+) +(.+) \| (?:no: (.+)|(\S+)::(\w+))")
PATCHERS = re.compile(r"(import|from) (nest_asyncio|jupyter_ui_poll|ipython_blocking)")
HELD = """
1  an exception in a click handler is invisible | browser/test_journeys.py::test_what_goes_wrong_behind_a_click_is_on_the_card_and_can_be_resumed
2  an exception in an observer is invisible | notebook/test_jupyter_troubles.py::test_what_an_observer_raises_is_on_the_card
3  people want to block until a click | kernels/test_matrix.py::test_a_cell_that_awaits_the_run_ends_with_the_click_or_says_that_none_will_come
4  a loop that waits for a widget never ends | notebook/test_cells.py::test_wait_ends_with_a_clear_error_at_its_timeout
5  a patched event loop does not make clicks arrive | docs/test_jupyter_issues.py::test_no_event_loop_is_patched
6  a widget in a cell sometimes blocks nbclient | docs/test_saved.py::test_a_card_is_executed_twenty_times_and_none_hangs
7  a blocking cell gets no widget events | kernels/test_matrix.py::test_a_cell_that_pauses_ends_and_the_next_one_runs
8  reopened notebooks show raw widget views | browser/test_approval.py::test_a_double_click_after_a_restart_charges_once_and_leaves_a_readable_file
9  restarted and reopened, "model not found" | browser/test_approval.py::test_a_double_click_after_a_restart_charges_once_and_leaves_a_readable_file
10 widget state does not survive a restart | kernels/test_matrix.py::test_after_a_restart_what_waits_is_there_and_nothing_has_run
11 of two views of one kernel one has dead buttons | browser/test_journeys.py::test_a_run_that_two_tabs_show_is_decided_once
12 a button that a magic showed did nothing | kernels/test_matrix.py::test_a_click_approves_and_leaves_nothing_to_click
13 text from threads vanishes | kernels/test_matrix.py::test_a_hundred_lines_of_a_reply_arrive_in_order_on_their_card
14 a thread's output lands in a later cell | kernels/test_matrix.py::test_what_a_run_in_the_background_says_is_in_no_other_cell
15 which cell a thread belongs to changed several times | kernels/test_matrix.py::test_a_click_does_not_keep_the_next_cell_waiting
16 callbacks race with the running cell | kernels/test_matrix.py::test_a_click_while_a_cell_runs_is_one_decision
17 a subshell of one kernel is used for another | kernels/test_matrix.py::test_two_kernels_decide_runs_of_their_own
18 subshells leak | no: we make none, and do not ask how many there are; what a click calls works on any thread (33)
19 errors without an error output passed | docs/test_guard.py::test_a_notebook_that_stops_early_fails_and_says_where
20 errors of magics gave exit code 0 in papermill | docs/test_saved.py::test_papermill_fills_the_prompt_and_its_exit_code_says_whether_it_stopped
21 errors of magics went unnoticed by nbconvert | notebook/test_kernels.py::test_nbconvert_says_by_its_exit_code_whether_it_stopped
22 `raises-exception` did not let Run All go on | browser/test_journeys.py::test_run_all_goes_on_past_a_cell_that_may_fail
23 kernels start flakily and hang | docs/test_jupyter_issues.py::test_notebooks_run_one_after_the_other
24 `:2` or JSON is taken for a parameter | notebook/test_jupyter_troubles.py::test_a_query_is_taken_as_it_was_written
25 `$$` is taken for a variable | notebook/test_jupyter_troubles.py::test_a_query_is_taken_as_it_was_written
26 braces in a prompt crash | notebook/test_prompt.py::test_braces_json_and_dollars_stay_as_they_are
27 braces are stripped from the magic's line | notebook/test_magics.py::test_parameters_of_an_earlier_cell_fill_line_and_body
28 frames are not found from library code | views/test_sql.py::test_a_frame_that_was_not_named_is_an_error_that_names_the_option
29 a relation that is shown later has lost its frame | notebook/test_jupyter_troubles.py::test_an_answer_is_a_frame_that_stays_as_it_was
30 statements of one cell run on different connections | views/test_sql.py::test_several_statements_give_the_answer_of_the_last
31 two copies of SQLite in one process lose locks | views/test_lock_loss.py::test_both_locks_are_kept_by
32 "database is locked" while somebody reads | notebook/test_undisturbed.py::test_a_writer_in_another_process_is_not_disturbed
33 a connection is used from another thread | kernels/test_matrix.py::test_every_method_of_a_handle_works_on_a_thread_of_its_own
34 an interrupt in a loop repeats earlier effects | notebook/test_jupyter_troubles.py::test_three_approvals_in_a_row_have_one_effect_each
35 an interrupt without a store does nothing | notebook/test_cells.py::test_a_cell_that_pauses_ends_and_shows_what_to_decide
36 an interrupt does not stop a cell that is busy in a child | lab/test_kernel.py::test_an_interrupt_ends_the_cell_long_before_its_child_would_and_no_child_is_left
37 a child goes on after an interrupt | lab/test_child.py::test_interrupting_the_parent_kills_the_child
38 an interrupt leaves orphans | lab/test_child.py::test_the_child_ends_with_its_parent
39 any edit in a cell makes another run of it | notebook/test_jupyter_troubles.py::test_blanks_around_a_prompt_are_no_other_prompt
40 an expression beside a cached block breaks it | notebook/test_magics.py::test_a_body_reaches_the_model_as_it_was_written
41 custom widgets need a CDN or a switch | docs/test_saved.py::test_only_widgets_are_used_that_every_front_end_has
42 widgets do not show in nbviewer | docs/test_saved.py::test_a_page_made_of_the_file_shows_the_cards
43 a kernel of its own kind fails in Colab | docs/test_saved.py::test_ipython_in_a_terminal_shows_cards_as_text_and_decides
44 linters choke on custom cell magics | docs/test_jupyter_issues.py::test_notebooks_are_clean_to_a_linter
45 parallel kernels fight for ports | docs/test_jupyter_issues.py::test_notebooks_run_one_after_the_other
"""


def test_each_trouble_is_held_by_a_test_that_exists_or_says_why_not() -> None:
    lines = [LINE.fullmatch(line) for line in HELD.strip().splitlines()]
    assert [int(line[1]) for line in lines if line] == list(range(1, 46))
    for line in filter(None, lines):
        if line[3] is None:
            text = (TESTS / line[4]).read_text(encoding="utf-8")
            assert f"def {line[5]}(" in text, f"{line[1]}: {line[4]} has no test {line[5]}"


def test_no_event_loop_is_patched() -> None:
    for module in PACKAGE.rglob("*.py"):
        assert not PATCHERS.search(module.read_text(encoding="utf-8")), module


def test_notebooks_run_one_after_the_other() -> None:
    """Kernels that start at once fight for ports."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["optional-dependencies"]["test"]
    assert not any(each.startswith("pytest-xdist") for each in needed)
    assert not any(
        each.startswith("-n") for each in project["tool"]["pytest"]["ini_options"]["addopts"]
    )


def test_notebooks_are_clean_to_a_linter() -> None:
    """But for names that a magic's `-o` gives, and for a cell that repairs what one before made."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "E9,F",
        "--ignore",
        "F811,F821",
    ]
    done = subprocess.run(
        [*command, str(TESTS.parent / "notebooks")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
