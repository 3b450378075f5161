"""The executor `ray`: actors of Ray Core, on this machine or on a cluster."""

from __future__ import annotations

import collections
import contextlib
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

from rue.cluster.advancing import Cursor
from rue.cluster.executors import ATTEMPTS, Outcome, Place, Worker
from rue.errors import RueError, SettingsError
from rue.version import __version__

__all__ = ["OnRay"]


SAFE = 2, 52
"""The first version that lets in only who has a token."""


PATIENCE, OTHERS = 600.0, 30.0
"""Seconds to wait for a worker where there is none, which may have to be started; and at the beginning for others."""


class OnRay:
    """Takes steps in actors; of w workers one has shards k, k + w, k + 2·w, …

    `ray` starts a Ray of its own on this machine, at the loopback address and with a temporary folder of its own, and
    ends it; `ray:HOST:PORT` joins the cluster that this machine is a node of, `ray://HOST:PORT` one through its client
    server. Actors hold only caches. The steps of one that dies, with its node or alone, are taken by the others at
    once; another is started for it, and takes part from the round on in which there is room for it.
    """

    def __init__(self, on: str, workers: int | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
        if on == "ray":
            _set_token()
        try:
            import ray
        except ImportError:
            raise SettingsError(
                "Ray is not installed: pip install 'rue[cluster]', or learn on local, which needs nothing."
            ) from None
        self._ray: Any = ray
        self._folder = ""
        if on == "ray" and tuple(map(int, ray.__version__.split(".")[:2])) < SAFE:
            raise SettingsError(
                f"Ray {ray.__version__} would let in everybody in the network: update it to {SAFE[0]}.{SAFE[1]}, or "
                "learn on local."
            )
        if ray.is_initialized():
            raise SettingsError("this process is connected to a Ray already: end that with ray.shutdown() first.")
        common: dict[str, Any] = {"log_to_driver": False, "namespace": f"rue-{os.getpid()}"}
        try:
            if on == "ray":
                self._folder = tempfile.mkdtemp(prefix="rue-ray-")
                many = workers or len(os.sched_getaffinity(0))
                ray.init("local", num_cpus=many, include_dashboard=False, **self._own(), **common)
            else:
                ray.init(on if on.startswith("ray://") else on.removeprefix("ray:"), **common)
            self.workers = workers or int(self._ray.cluster_resources().get("CPU", 1))
        except BaseException as error:
            self.close()
            if isinstance(error, Exception):
                raise RueError(f"{on} cannot be reached or started: {_first_line(error)}.") from error
            raise

    def _own(self) -> dict[str, Any]:
        """How a Ray on this machine is started: its memory for objects is that of some models."""
        return {"_node_ip_address": "127.0.0.1", "_temp_dir": self._folder, "object_store_memory": 2**28}

    def begin(self, cursors: Sequence[Cursor]) -> None:
        self.workers = max(1, min(self.workers, len(cursors)))
        self._cursors = self._ray.put(list(cursors))
        # Without restarts by Ray, which would wait for a free processor for as long as it takes.
        self._actor: Any = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor)
        self._ready: list[Any] = []
        self._starting: dict[Any, Any] = {}
        for _ in range(self.workers):
            self._start()
        self._admit(PATIENCE, 1)
        self._require_workers()
        self._admit(OTHERS)

    def advance(self, state: bytes, places: Sequence[Place], n: int) -> Iterator[Outcome]:
        self._admit(0.0)
        self._taken_by: dict[Any, Any] = {}
        shared, attempts = self._ray.put(state), collections.Counter[int]()
        steps = {self._step(place, shared, n): place for place in places}
        while steps:
            [ready], _ = self._ray.wait(list(steps))
            place = steps.pop(ready)
            try:
                outcome = self._ray.get(ready)
            except self._ray.exceptions.RayError as error:
                attempts[place.shard] += 1
                if attempts[place.shard] >= ATTEMPTS:
                    raise RueError(
                        f"the step of shard {place.shard} has failed {ATTEMPTS} times: {_first_line(error)}."
                    ) from error
                if isinstance(error, self._ray.exceptions.RayActorError):
                    self._replace(self._taken_by[ready])
                steps[self._step(place, self._ray.put(state), n)] = place
            else:
                yield outcome

    def _step(self, place: Place, state: Any, n: int) -> Any:
        if not self._ready:
            self._admit(PATIENCE, 1)
            self._require_workers()
        actor = self._ready[place.shard % len(self._ready)]
        step = actor.advance.remote(state, place, n)
        self._taken_by[step] = actor
        return step

    def _start(self) -> None:
        """Ask for another worker."""
        actor = self._actor.remote(self._cursors)
        self._starting[actor.versions.remote()] = actor

    def _admit(self, seconds: float, many: int | None = None) -> None:
        """Let those workers take part that have started; wait so many seconds for so many of them."""
        if not self._starting:
            return
        begun, _ = self._ray.wait(list(self._starting), num_returns=many or len(self._starting), timeout=seconds)
        for step in begun:
            actor = self._starting.pop(step)
            try:
                versions = self._ray.get(step)
            except self._ray.exceptions.RayError as error:  # it died as it started
                if not self._ready and not self._starting:
                    raise RueError(f"no worker can be started on Ray: {_first_line(error)}.") from error
                continue
            if versions != _versions():
                raise RueError(
                    f"the workers have {versions}, and this process has {_versions()}: they must be the same."
                )
            self._ready.append(actor)

    def _require_workers(self) -> None:
        if not self._ready:
            free = self._ray.available_resources().get("CPU", 0)
            raise RueError(
                f"no worker could be started on Ray within {PATIENCE:.0f} seconds: {free:g} processors are free; wait "
                "for some, or add nodes."
            )

    def _replace(self, actor: Any) -> None:
        """Another worker for one that has died."""
        if actor in self._ready:
            self._ready.remove(actor)
            with contextlib.suppress(Exception):  # it is gone, or cannot be reached
                self._ray.kill(actor)
            self._start()

    def close(self) -> None:
        with contextlib.suppress(Exception):  # it may be gone
            self._ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _set_token() -> None:
    """Let a Ray of its own ask for a token: its ports are open on all interfaces, whatever address it is given.

    Ray looks at these settings when it is imported.
    """
    if os.environ.get("RAY_AUTH_MODE") == "token" and os.environ.get("RAY_AUTH_TOKEN"):
        return
    if "ray" in sys.modules:
        raise SettingsError(
            "Ray was imported before rue could give it a token, and would let in everybody in the network: set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN before it is imported, or learn on local."
        )
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


class _Actor:
    """A worker as an actor."""

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self._worker = Worker(cursors)

    def versions(self) -> str:
        return _versions()

    def advance(self, state: bytes, place: Place, n: int) -> Outcome:
        return self._worker.advance(state, place, n)


def _versions() -> str:
    """What must be the same everywhere for the same bits."""
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("numba", "numpy", "pyarrow"))
    return f"rue {__version__}, Python {'.'.join(map(str, sys.version_info[:2]))}, {packages}"
