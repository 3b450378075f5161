"""`rue`: the program, and how errors leave it.

Exit codes: 0 done, 1 the data or the run failed, 2 wrong usage, 130 stopped by Ctrl-C after saving. An error is one
line on stderr; a traceback is shown only with RUE_DEBUG=1.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
from typing import Annotated, Any

import typer

from rue.cli.interrupts import ignore_at_exit
from rue.cli.memory import keep_freed
from rue.cli.standard import flush, open_closed
from rue.compiled import on_long_compilation
from rue.errors import NO_MEMORY, RueError, SettingsError
from rue.version import __version__

__all__ = ["app", "main", "refuse_interactions"]

app = typer.Typer(
    name="rue",
    help="Online learning that needs no learning rate and carries a proof of how well it did.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_USAGE: Any = typer.BadParameter.__mro__[2]  # ClickException, of whichever click typer has


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rue {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which it is.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; 0 done, 1 the data or the run failed, 2 wrong usage, 130 stopped by Ctrl-C after saving."""
    open_closed()  # before anything prints or opens a file
    keep_freed()  # before anything large is allocated
    code = _run()
    wrong = flush()
    if wrong is not None and not code:
        code = 1 if isinstance(wrong, BrokenPipeError) else _complain(f"{wrong.strerror or wrong}.", 1)
    ignore_at_exit()
    sys.exit(code)


def _run() -> int:
    """Run the command that was asked for; its exit code."""
    from rue.cli.commands import register

    if not {"-q", "--quiet"} & set(sys.argv):
        on_long_compilation(lambda: print("rue: compiling, once for this machine ...", file=sys.stderr))
    register(*sys.argv[1:2])
    try:
        refuse_interactions(sys.argv[1:])
        code = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except _USAGE as error:
        error.show()
        return int(error.exit_code)
    except SettingsError as error:
        return _complain(error, 2)
    except RueError as error:
        return _complain(error, 1)
    except BrokenPipeError:
        return 1
    except MemoryError:
        return _complain(NO_MEMORY, 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}.", 1)
    except Exception as error:
        if os.environ.get("RUE_DEBUG"):
            raise
        message = f"{type(error).__name__}: {error}".splitlines()[0][:200].rstrip(".")
        return _complain(f"this should not happen ({message}): please report it, with what RUE_DEBUG=1 shows.", 1)
    return code if isinstance(code, int) else 0


_INTERACTION = re.compile(r"-q[^-\s]{2,3}|--(?:quadratic|cubic|interactions)(?:=.*)?")
"""Vowpal Wabbit's options for products of features, where the namespaces are not an argument of their own."""


def refuse_interactions(words: list[str]) -> None:
    """Refuse `-q ab`, by which Vowpal Wabbit multiplies features of two namespaces and rue would be quiet.

    >>> refuse_interactions(["learn", "a.vw", "-q"])
    """
    for word, after in itertools.pairwise([*words, ""]):
        pair = word == "-q" and re.fullmatch(r"[^-\s/.]{2,3}", after) and not os.path.exists(after)
        if pair or _INTERACTION.fullmatch(word):
            option = f"{word} {after}" if pair else word
            letters = after if pair else word.removeprefix("-q") if word.startswith("-q") else "ab"
            raise SettingsError(
                f"{option}: -q alone is short for --quiet; to multiply the features of two namespaces say --interact "
                f"{letters[:2]}, or of all --interact ::, and for columns of a table --cross A,B."
            )


def _complain(error: object, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"rue: {error}", file=sys.stderr)
    return code
