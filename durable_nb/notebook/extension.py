"""`%load_ext durable_nb`: the magics come, and go again.

Loading costs next to nothing: agents, stores, pandas and widgets are imported when first needed,
or here, where something waits for a person.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from IPython import get_ipython
from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from durable_nb.model.errors import DurableError
from durable_nb.notebook.banner import banner
from durable_nb.notebook.crash import SHOWN, CrashMagics, card
from durable_nb.notebook.magics import DurableMagics

if TYPE_CHECKING:
    from IPython.core.formatters import DisplayFormatter, HTMLFormatter
    from IPython.core.interactiveshell import InteractiveShell

MAGICS = {"line": ("durable",), "cell": ("durable", "durable_sql", "crash")}
CLASSES = (DurableMagics, CrashMagics)


FEW = 3  # of the runs that wait are shown at once, the oldest


def load(shell: InteractiveShell) -> None:
    """Register the magics, once, say which store is in use, and show what waits in it. Nothing is
    run or decided."""
    magics = _loaded(shell)
    if magics is None:
        shell.register_magics(*CLASSES)
        shell.input_transformers_cleanup.append(as_meant)
        shell.Completer.custom_matchers.append(offered)
        _cards(shell).for_type_by_name(*SHOWN, card)
        magics = cast("DurableMagics", _loaded(shell))
        shell.events.register("post_run_cell", magics.look_again)
    told = banner()
    print(told.line)  # noqa: T201  # what the cell shows
    if told.waits:
        _show_what_waits(magics)


def _show_what_waits(magics: DurableMagics) -> None:
    from IPython.display import display

    try:
        display(magics.desk.pending(FEW))
    except DurableError as error:  # what is wrong with a store does not keep the magics away
        print(f"durable_nb: {error}")  # noqa: T201  # what the cell shows


def unload(shell: InteractiveShell) -> None:
    """Take everything back that `load` did."""
    magics = _loaded(shell)
    if magics is None:
        return
    manager = shell.magics_manager
    for each in CLASSES:
        shell.configurables.remove(manager.registry.pop(each.__name__))
    for kind, names in MAGICS.items():
        for name in names:
            del manager.magics[kind][name]
    shell.input_transformers_cleanup.remove(as_meant)
    shell.Completer.custom_matchers.remove(offered)
    _cards(shell).pop(".".join(SHOWN))
    shell.events.unregister("post_run_cell", magics.look_again)


def _cards(shell: InteractiveShell) -> HTMLFormatter:
    """Where IPython looks up how a value shows as HTML."""
    formatter = cast("DisplayFormatter", shell.display_formatter)
    return cast("HTMLFormatter", formatter.formatters["text/html"])


@context_matcher(priority=1000, identifier="durable_nb")  # before those that know only Python
def offered(context: CompletionContext) -> SimpleMatcherResult:
    """What Tab offers in a line of ours. Nothing else is offered beside it."""
    from durable_nb.notebook.typed.completion import Offer, offer

    names = get_ipython().user_ns
    place = context.full_text, context.cursor_line, context.cursor_position
    found = offer(*place, names) or Offer("", ())
    return {
        "completions": [SimpleCompletion(text) for text in found.texts],
        "matched_fragment": found.fragment,
        "suppress": bool(found.texts),
        "ordered": True,
    }


def as_meant(lines: list[str]) -> list[str]:
    """A cell of ours without a body gets an empty line, so that it is our error that says what is
    missing, and not IPython's, which test runners take for success. A prompt that ends with `?` is
    a question to the model, and none about a name."""
    if len(lines) == 1 and lines[0].startswith(("%%durable", "%%crash")):
        return [lines[0].rstrip("\n") + "\n", " \n"]
    if lines and lines[0].startswith("%%"):
        return lines
    return [_QUESTION.sub(_called, line) for line in lines]


_QUESTION = re.compile(r"^%durable\s+(?P<line>resume\s+\S+\s.*\?)\s*$")


def _called(question: re.Match[str]) -> str:
    return f"get_ipython().run_line_magic('durable', {question['line']!r})\n"


def _loaded(shell: InteractiveShell) -> DurableMagics | None:
    magics: DurableMagics | None = shell.magics_manager.registry.get(DurableMagics.__name__)
    return magics
