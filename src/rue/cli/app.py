"""`rue`: the commands, and how errors leave the program."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from rue._notices import on_long_compilation
from rue.cli.memory import keep_freed
from rue.errors import RueError, SettingsError
from rue.version import __version__

__all__ = ["app", "main"]

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
    from rue.cli.commands import register

    keep_freed()
    if not {"-q", "--quiet"} & set(sys.argv):
        on_long_compilation(lambda: print("rue: compiling, once for this machine ...", file=sys.stderr))
    register(*sys.argv[1:2])
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        code = 130
    except _USAGE as error:
        error.show()
        code = error.exit_code
    except SettingsError as error:
        code = _complain(error, 2)
    except RueError as error:
        code = _complain(error, 1)
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        code = _complain(f"{where}{error.strerror or error}.", 1)
    except Exception as error:
        if os.environ.get("RUE_DEBUG"):
            raise
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200].rstrip(".")
        code = _complain(f"this should not happen ({said}): please report it, with what RUE_DEBUG=1 shows.", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(error: object, code: int) -> int:
    print(f"rue: {error}", file=sys.stderr)
    return code
