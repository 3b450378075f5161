"""The routes of the service, as a plain ASGI application: 32 to 41 µs a request, where frameworks take 75 to 200."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import urllib.parse
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from typing import Any

import msgspec

from rue.errors import DataError, RueError
from rue.serve import pages, status
from rue.serve.model import Answer, ServedModel
from rue.serve.records import LABEL, LEARN, PREDICT, Line, decode, require_line
from rue.serve.service import Busy, Request, Service
from rue.serve.settings import settings_of

__all__ = ["Application"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = (b"content-type", b"application/json")
LINES = 1000
"""Lines of a batch that are answered together."""
MOST_LISTENERS = 100
_encode = msgspec.json.Encoder().encode
_OWN = frozenset((b"localhost", b"127.0.0.1", b"[::1]"))
_READ = ("report", "certificate", "weights")
_ONE = {"predict": PREDICT, "label": LABEL, "learn": LEARN}


class Refused(Exception):
    """A request that is answered with an error before it comes to the service."""

    def __init__(self, status: int, why: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


class Application:
    """Answers requests over HTTP for a service; `token` must be given with each, if there is one."""

    def __init__(self, service: Service, token: str | None = None) -> None:
        self.service, self.token = service, None if token is None else token.encode()
        self.ready = False
        """Whether requests are answered: `/readyz` says so."""
        self.listeners = 0
        self._outbox: list[tuple[asyncio.Future[list[Answer]], list[Answer]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        service.listeners.append(self._flush)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            await self._route(scope, receive, send)
        except Refused as refused:
            if refused.status != 404:
                self.service.note_error(refused.status, scope["path"], str(refused))
            await _respond(send, refused.status, {"error": str(refused)}, *refused.headers)
        except (RueError, Busy) as error:
            busy = isinstance(error, Busy)
            why = "too many requests wait: try again in a second." if busy else str(error)
            self.service.note_error(429 if busy else 400, scope["path"], why)
            await _respond(send, 429 if busy else 400, {"error": why}, *((b"retry-after", b"1"),) * busy)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._loop = asyncio.get_running_loop()
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    # To the service and back.

    async def _ask(self, model: str, lines: Sequence[tuple[Line, bytes]]) -> list[Answer]:
        """What the service answers to some lines."""
        loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Answer]] = loop.create_future()
        self.service.submit(Request(model, lines, partial(self._done, future)))
        return await future

    async def _call(self, function: Callable[[], Answer]) -> Answer:
        """What a function says that is called between two groups of requests."""
        loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Answer]] = loop.create_future()
        self.service.submit(Request("", (), partial(self._done, future), function))
        return (await future)[0]

    def _done(self, future: asyncio.Future[list[Answer]], answers: list[Answer]) -> None:
        """Called by the thread of the service; `_flush` hands on what came together."""
        self._outbox.append((future, answers))

    def _flush(self) -> None:
        if self._outbox and self._loop is not None:
            box, self._outbox = self._outbox, []
            self._loop.call_soon_threadsafe(_deliver, box)

    # Routes.

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        if path == "/healthz":
            await _respond(send, 200, {"alive": True})
            return
        if path == "/readyz":
            full = self.service.full
            await _respond(
                send, 503 if full or not self.ready else 200, {"ready": self.ready and not full, "why": full}
            )
            return
        given = self._require_same_site(scope["headers"])
        found = pages.live_page(path)
        if found is not None:  # the page itself asks for the token, and sends it with what it asks
            _require_method(method, "GET")
            await _send(send, 200, found[1], (b"content-type", found[0].encode()), *pages.HEADERS)
            return
        self._require_token(given)
        if path.startswith("/v1/models/"):
            name, _, rest = path[11:].partition("/")
            await self._of_model(scope, receive, send, method, name, rest)
        elif path == "/v1/models":
            _require_method(method, "GET")
            await self._json(send, lambda: Answer(200, {"models": self._models()}))
        else:
            _require_method(method, "GET")
            page = pages.page(path, self.service)
            if page is None:
                raise Refused(404, f"there is nothing at {path[:200]}: /openapi.json lists what there is.")
            kind, content = page
            content = content if isinstance(content, bytes) else await self._called(content)
            await _send(send, 200, content, (b"content-type", kind.encode()), *pages.HEADERS)

    async def _called(self, make: Callable[[], bytes]) -> bytes:
        """A page that looks at the models."""
        found: list[bytes] = []

        def call() -> Answer:
            found.append(make())
            return Answer(200, {})

        await self._call(call)
        return found[0]

    def _models(self) -> list[dict[str, Any]]:
        return [
            {"name": model.name, "examples": model.driver.examples, "settings": model.settings.to_json()}
            for model in self.service.fold.models.values()
        ]

    def _require_same_site(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Refuse a request that a page of another site has made a browser send; what it gives as authorization."""
        host = origin = given = b""
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"authorization":
                given = value
        if origin and origin.split(b"://", 1)[-1] != host:
            raise Refused(403, "requests from pages of other sites are refused.")
        if self.token is None:
            name = host.rsplit(b":", 1)[0] if not host.endswith(b"]") else host
            if host and name not in _OWN and not _is_own_address(name):
                raise Refused(403, "without a token only requests to localhost are answered.")
        return given

    def _require_token(self, given: bytes) -> None:
        if self.token is not None and not hmac.compare_digest(given, b"Bearer " + self.token):
            raise Refused(
                401, "give the service's token: Authorization: Bearer TOKEN.", (b"www-authenticate", b"Bearer")
            )

    async def _of_model(self, scope: Scope, receive: Receive, send: Send, method: str, name: str, rest: str) -> None:
        if rest in _ONE:
            _require_method(method, "POST")
            body = await self._body(scope, receive, self.service.limits.body)
            line = decode(body)
            require_line(line, _ONE[rest])
            answer = (await self._ask(name, ((line, body),)))[0]
            await _respond(send, *answer)
        elif rest == "batch":
            _require_method(method, "POST")
            await self._batch(name, await self._body(scope, receive, self.service.limits.batch), send)
        elif rest == "":
            _require_method(method, "PUT", "GET")
            if method == "GET":
                await self._json(send, lambda: Answer(200, status.served(self._named(name))))
                return
            body = await self._body(scope, receive, self.service.limits.body)
            settings = settings_of(_json(body or b"{}"))
            await self._json(send, lambda: self.service.create(name, settings))
        elif rest == "explain":
            _require_method(method, "POST")
            line = decode(await self._body(scope, receive, self.service.limits.body))
            require_line(line, PREDICT)
            await self._json(send, lambda: Answer(200, status.explanation(self._named(name), line.features or {})))
        elif rest in ("challenger", "promote", "rollback"):
            _require_method(method, "POST")
            await self._turn(scope, receive, send, name, rest)
        elif rest == "events":
            _require_method(method, "GET")
            await self._events(name, receive, send)
        elif rest in _READ:
            _require_method(method, "GET")
            query = _query(scope)
            await self._json(send, lambda: Answer(200, self._read(rest, self._named(name), query)))
        else:
            raise Refused(404, f"there is nothing at {scope['path'][:200]}: /openapi.json lists what there is.")

    async def _turn(self, scope: Scope, receive: Receive, send: Send, name: str, what: str) -> None:
        """A challenge, a promotion, or a step back to a snapshot."""
        body, service = await self._body(scope, receive, self.service.limits.body), self.service
        if what == "challenger":
            content = _json(body or b"{}")
            if not isinstance(content, dict) or type(content.get("from", 1)) is not int:
                raise DataError('a challenger is {"from": the number of a record, and options of rue learn}.')
            begin = content.pop("from", None)
            settings = settings_of(content)
            await self._json(send, lambda: (self._named(name), service.challenge(name, settings, begin))[1])
        elif what == "promote":
            await self._json(send, lambda: (self._named(name), service.promote(name))[1])
        else:
            to = _number(_query(scope), "to")
            if to is None or not 0 < to < 1e15:
                raise DataError("to is the number of a snapshot: …/rollback?to=SNAPSHOT.")
            await self._json(send, lambda: (self._named(name), service.roll_back(name, int(to)))[1])

    def _named(self, name: str) -> Any:
        if name not in self.service.fold.numbers:
            raise NotThere(name)
        return self.service.fold.named(name)

    def _read(self, what: str, model: ServedModel, query: dict[str, str]) -> dict[str, Any]:
        if what == "report":
            return status.report_of(model, self.service.fold.races.get(model.number))
        if what == "certificate":
            return status.certificate(model, _number(query, "radius"), query.get("window"))
        return status.weights(model, _top(query))

    async def _json(self, send: Send, call: Callable[[], Answer]) -> None:
        await _respond(send, *await self._call(partial(_found, call)))

    async def _body(self, scope: Scope, receive: Receive, most: int) -> bytes:
        """The body of a request, which must arrive in time and be no longer than it may."""
        for key, value in scope["headers"]:
            if key == b"content-length" and value.isdigit() and int(value) > most:
                raise Refused(413, f"the request has {int(value):,} bytes, more than {most:,}.")
        try:
            async with asyncio.timeout(self.service.limits.seconds):
                message = await receive()
                body = message.get("body", b"")
                if not message.get("more_body"):
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the connection was closed.")
                    return bytes(body)
                parts, size = [body], len(body)
                while message.get("more_body"):
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the connection was closed.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise Refused(413, f"the request has more than {most:,} bytes.")
                return b"".join(parts)
        except TimeoutError:
            raise Refused(408, f"the request did not arrive within {self.service.limits.seconds:g} seconds.") from None

    async def _batch(self, name: str, body: bytes, send: Send) -> None:
        """Lines of NDJSON, answered line by line, in their order."""
        if name not in self.service.fold.numbers:
            raise Refused(404, str(NotThere(name)))
        begun = False
        lines = [line for line in body.split(b"\n") if line and not line.isspace()]
        for begin in range(0, len(lines), LINES):
            part = lines[begin : begin + LINES]
            out = await self._answer_lines(name, part, begun)
            if not begun:
                headers = [(b"content-type", b"application/x-ndjson")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                begun = True
            try:
                async with asyncio.timeout(self.service.limits.seconds):
                    await send({"type": "http.response.body", "body": out, "more_body": True})
            except TimeoutError:
                return  # the client has stopped reading, and what it sent before is learnt: the rest is not taken in
        if not begun:
            raise Refused(400, "the batch has no lines.")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer_lines(self, name: str, part: list[bytes], patient: bool) -> bytes:
        """The answers to some lines; one that cannot be read, or is refused, is answered with its status."""
        good: list[tuple[Line, bytes]] = []
        wrong: dict[int, str] = {}
        for i, body in enumerate(part):
            try:
                line = decode(body)
                require_line(line)
                good.append((line, body))
            except DataError as error:
                wrong[i] = str(error)
        while True:
            try:
                answers = iter(await self._ask(name, good) if good else [])
                break
            except Busy:
                if not patient:
                    raise
                await asyncio.sleep(0.02)  # the first lines have been answered
        out = []
        for i in range(len(part)):
            answer = Answer(400, {"error": wrong[i]}) if i in wrong else next(answers)
            out.append(_encode(answer.content if answer.status < 300 else {**answer.content, "status": answer.status}))
        return b"\n".join([*out, b""])

    async def _events(self, name: str, receive: Receive, send: Send) -> None:
        """What changes, once a second, until the client goes; one that stops reading is left after a while."""
        if name not in self.service.fold.numbers:
            raise Refused(404, str(NotThere(name)))
        if self.listeners >= MOST_LISTENERS:
            raise Refused(429, f"{MOST_LISTENERS} clients listen already.", (b"retry-after", b"10"))
        self.listeners += 1
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while self.ready and not gone.done():
                answer = await self._call(
                    partial(_found, lambda: Answer(200, pages.event(self.service, self._named(name))))
                )
                async with asyncio.timeout(self.service.limits.seconds):
                    body = b"data: " + _encode(answer.content) + b"\n\n"
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                await asyncio.wait([gone], timeout=1.0)
        except (TimeoutError, DataError):
            pass
        finally:
            self.listeners -= 1
            gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class NotThere(DataError):
    """A model that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no model {name[:64]!r}: PUT /v1/models/{name[:64]} creates one.")


def _found(call: Callable[[], Answer]) -> Answer:
    try:
        return call()
    except NotThere as error:
        return Answer(404, {"error": str(error)})


def _deliver(box: list[tuple[asyncio.Future[list[Answer]], list[Answer]]]) -> None:
    for future, answers in box:
        if not future.done():
            future.set_result(answers)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _is_own_address(name: bytes) -> bool:
    try:
        return ipaddress.ip_address(name.decode("ascii").strip("[]")).is_loopback
    except ValueError:
        return False


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"this is not JSON: {str(error).rstrip('.')}.") from None


def _require_method(method: str, *allowed: str) -> None:
    if method not in allowed:
        raise Refused(
            405, f"use {' or '.join(allowed)} here, not {method[:20]}.", (b"allow", ", ".join(allowed).encode())
        )


async def _respond(send: Send, code: int, content: Any, *headers: tuple[bytes, bytes]) -> None:
    await _send(send, code, _encode(content), JSON, *headers)


async def _send(send: Send, code: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": code, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


def _query(scope: Scope) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(scope["query_string"].decode("latin-1")))


def _number(query: dict[str, str], name: str) -> float | None:
    if name not in query:
        return None
    try:
        return float(query[name])
    except ValueError:
        raise DataError(f"{name} is a number, not {query[name][:40]!r}.") from None


def _top(query: dict[str, str]) -> int:
    top = _number(query, "top")
    if top is not None and not 1 <= top < 1e9:
        raise DataError("top is a whole number from 1 on.")
    return 20 if top is None else int(top)
