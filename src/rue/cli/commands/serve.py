"""`rue serve`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from rue.cli import options as o
from rue.errors import SettingsError

__all__ = ["require_extra", "serve"]


@dataclasses.dataclass(frozen=True)
class Listening:
    """Where the service listens, and what it takes on."""

    host: Annotated[str, typer.Option(help="Where to listen; one that others reach needs --token-file.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8420
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file with a token, which each request must then give.")
    ] = None
    pending: Annotated[int, typer.Option(min=1, help="How many predictions may wait for their label.")] = 100_000
    expire: Annotated[
        str, typer.Option(metavar="TIME", help="After how long a prediction without a label expires: 90s, 12h, 30d.")
    ] = "30d"
    snapshot_every: Annotated[
        int, typer.Option(min=1, metavar="RECORDS", help="Write a snapshot after so many records.")
    ] = 200_000
    prune: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="RECORDS",
            help="Move what is older than the oldest snapshot, but for so many, to an archive.",
        ),
    ] = None


@o.command(
    epilog='Then `curl localhost:8420/v1/models/default/learn -d \'{"features": {"pages": 3}, "label": "yes"}\'`; '
    "http://localhost:8420/ shows how it goes."
)
def serve(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where the log and the snapshots are; made if new.")],
    data: Annotated[o.DataOptions, "task positive class_weight bits drop category text day_first month_first"],
    learning: o.LearnerOptions,
    *,
    interval: o.IntervalLevels = None,
    side: o.IntervalSide = "both",
    alarm: o.AlarmRounds = None,
    radius: o.Radius = None,
    listening: Listening,
) -> int:
    """Learn while serving: predictions and labels over HTTP, each on disk before it is answered.

    `rue serve clicks --task classify`

    `rue serve prices --learner ogd --loss absolute --port 9000`
    """
    require_extra()
    from rue.serve.server import read_token, serve
    from rue.serve.service import Limits
    from rue.serve.settings import Settings

    data.require_task()
    changed = o.changed(data) | o.changed(learning)
    levels = o.levels_in(interval)
    settings = Settings(
        task=data.task,
        positive=data.positive,
        class_weight=data.class_weight,
        learner=learning.learner,
        loss=learning.loss,
        domain=learning.domain,
        step=learning.step,
        budget=learning.budget,
        linear=learning.linear,
        maps=learning.maps,
        lags=None if learning.lags is None else list(learning.chosen_lags() or ()),
        intercept=learning.intercept,
        interval=levels,
        side=side,
        alarm=alarm,
        radius=radius,
        bits=20 if data.bits is None else data.bits,
        category=list(filter(None, data.category.split(","))),
        text=list(filter(None, data.text.split(","))),
        drop=list(filter(None, data.drop.split(","))),
        order="day-first" if data.day_first else "month-first" if data.month_first else "",
    )
    settings.require()
    given = bool(changed) or settings != Settings()
    limits = Limits(
        pending=listening.pending,
        age=_seconds(listening.expire),
        every=listening.snapshot_every,
        prune=listening.prune,
    )
    return serve(
        folder,
        settings if given else None,
        host=listening.host,
        port=listening.port,
        token=read_token(listening.token_file, listening.host),
        limits=limits,
    )


def require_extra() -> None:
    """Refuse to serve without the packages of the extra."""
    try:
        import httptools  # noqa: F401
        import msgspec  # noqa: F401
        import uvicorn  # noqa: F401
        import uvloop  # noqa: F401
    except ImportError as error:
        raise SettingsError(f"rue serve needs {error.name}: pip install 'rue[serve]'.") from None


def _seconds(text: str) -> float:
    """90s, 15m, 12h or 30d.

    >>> _seconds("12h")
    43200.0
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    try:
        seconds = float(text[:-1]) * units[text[-1]]
        if not 0.0 < seconds < 1e12:
            raise ValueError
    except (KeyError, IndexError, ValueError):
        raise SettingsError(f"--expire takes a time such as 90s, 12h or 30d, not {text[:40]!r}.") from None
    return seconds
