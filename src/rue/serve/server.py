"""`serve`: the process around a service: sockets, signals, logs in lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import json
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rue.errors import DataError, SettingsError
from rue.serve.routes import Application
from rue.serve.service import Limits, Service
from rue.serve.settings import Settings

__all__ = ["is_loopback", "read_token", "serve", "tell"]

MOST_CONNECTIONS = 1000
SECONDS_FOR_HEADERS = 20.0


def tell(event: str, **details: Any) -> None:
    """A line of JSON on stderr."""
    line = json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()), "event": event, **details})
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def read_token(path: str | None, host: str) -> str | None:
    """The token that a file has in its first line; a host that others reach needs one."""
    if path is None:
        if not is_loopback(host):
            raise SettingsError(
                f"{host} is reached from elsewhere: give --token-file FILE, whose first line is a token."
            )
        return None
    try:
        token = Path(path).read_text(encoding="ascii").split("\n", 1)[0].strip()
    except (OSError, UnicodeError) as error:
        raise DataError(f"the token file {path} cannot be read: {error}.") from error
    if len(token) < 16 or not token.isprintable() or " " in token:
        raise DataError(
            f"the token in {path} is too short: give 16 characters or more, such as `openssl rand -hex 16`."
        )
    return token


def serve(
    folder: str,
    settings: Settings | None,
    *,
    host: str = "127.0.0.1",
    port: int = 8420,
    token: str | None = None,
    limits: Limits | None = None,
) -> int:
    """Serve a folder until SIGTERM or Ctrl-C; what was taken in by then is answered, and a snapshot written."""
    sys.setswitchinterval(0.002)
    listening = _bind(host, port)
    service = Service(Path(folder), settings, limits, tell)
    application = Application(service, token)
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http=_Connection,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=20,
    )
    server = _Server(config)
    service.on_failure = lambda: _end(server, application)
    service.start()
    application.ready = True
    _spare_the_collector()
    tell("listening", host=host, port=listening.getsockname()[1], folder=str(folder), token=token is not None)
    try:
        with _signals(server, application), asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(server.serve([listening]))
    finally:
        service.stop()
        tell("stopped", records=service.log.last)
    return 1 if service.failed else 0


def _spare_the_collector() -> None:
    """Leave what the imports have made out of the searches for garbage, each of which would hold up all requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _end(server: uvicorn.Server, application: Application) -> None:
    """Take in nothing more; what is on its way is answered."""
    application.ready = False
    server.should_exit = True


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


class _Connection(HttpToolsProtocol):
    """A connection that must send the headers of a request in time: uvicorn would wait for ever."""

    _impatience: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, error: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(error)

    def on_message_begin(self) -> None:
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._wait_no_more()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._wait_no_more()
        self._impatience = self.loop.call_later(SECONDS_FOR_HEADERS, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()


class _Server(uvicorn.Server):
    """Leaves signals to `_signals`: uvicorn would raise them again when it has stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.contextmanager
def _signals(server: uvicorn.Server, application: Application) -> Any:
    """SIGTERM and Ctrl-C stop the server after what it has taken in."""

    def stop(number: int, frame: object) -> None:
        _end(server, application)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, stop)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _bind(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise DataError(f"{host}:{port} cannot be listened at: {(error.strerror or str(error)).lower()}.") from error
    listening.setblocking(False)
    return listening
