"""`Client`: a service from Python, a few lines over httpx."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote

from rue.errors import DataError

__all__ = ["Client"]


class Client:
    """Talks to a model of a service that `rue serve` runs; answers are the dictionaries that the service sends.

    `token` is the service's, if it has one; `timeout` is in seconds. A request that finds the queue full is sent again
    for `patience` seconds. A refusal is a `DataError` with the service's sentence. Examples that have an `id` may be
    sent again: what was learnt is not learnt twice.

    >>> import rue
    >>> client = rue.Client("http://127.0.0.1:8420", model="prices")
    >>> client.url
    'http://127.0.0.1:8420/v1/models/prices'
    >>> client.close()
    >>> def sell(client, house, features):
    ...     client.create(task="regress", interval=0.9)
    ...     asked = client.predict(features, id=house)["upper"]
    ...     client.label(house, 0.9 * asked)  # a month later
    ...     client.learn({"rooms": 3}, 250.0, weight=2.0)
    ...     print([answer["learnt"] for answer in client.batch([{"features": {"rooms": 4}, "label": 300.0}])])
    ...     print(client.report()["risk"], client.certificate(radius=10, window="last:1000")["words"])
    ...     print(client.weights(top=5), client.explain(features)["words"])

    docs/jobs/serve.md.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8420",
        model: str = "default",
        *,
        token: str | None = None,
        timeout: float = 60.0,
        patience: float = 10.0,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise DataError("Client needs httpx: pip install 'rue[serve]'.") from None
        self.url, self.patience = f"{url.rstrip('/')}/v1/models/{quote(model, safe='')}", patience
        self._failed = httpx.HTTPError
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(headers=headers, timeout=timeout)

    def create(self, **options: Any) -> dict[str, Any]:
        """Create the model, with options of `rue learn`; the same again changes nothing."""
        return self._ask("PUT", "", options)

    def predict(self, features: Mapping[str, Any], id: str | None = None) -> dict[str, Any]:  # noqa: A002
        """The prediction for an example, whose label may come later by its id."""
        return self._ask("POST", "predict", _given(features=dict(features), id=id))

    def label(self, id: str, label: Any, weight: float | None = None) -> dict[str, Any]:  # noqa: A002
        """The label of a prediction, however late."""
        return self._ask("POST", "label", _given(id=id, label=_plain(label), weight=weight))

    def learn(
        self,
        features: Mapping[str, Any],
        label: Any,
        id: str | None = None,  # noqa: A002
        weight: float | None = None,
    ) -> dict[str, Any]:
        """Predict an example and learn its label at once."""
        return self._ask("POST", "learn", _given(features=dict(features), label=_plain(label), id=id, weight=weight))

    def batch(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The answers to many `lines` at once, each a dictionary as `learn` sends it; one refused has a `status`."""
        body = "\n".join(json.dumps(dict(line), default=_plain) for line in lines)
        for line in self._send("POST", "batch", body).text.splitlines():
            yield json.loads(line)

    def report(self) -> dict[str, Any]:
        """The report of all that was learnt."""
        return self._ask("GET", "report")

    def certificate(self, radius: float | None = None, window: str | None = None) -> dict[str, Any]:
        """What no linear model of this norm could have beaten; `window` is such as `1,1000` or `last:1000`."""
        return self._ask("GET", "certificate", radius=radius, window=window)

    def weights(self, top: int = 20) -> list[list[Any]]:
        """The largest weights, by the names of features."""
        listed: list[list[Any]] = self._ask("GET", "weights", top=top)["weights"]
        return listed

    def explain(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """The parts of one prediction."""
        return self._ask("POST", "explain", {"features": dict(features)})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, method: str, what: str, content: Any = None, **query: Any) -> dict[str, Any]:
        body = None if content is None else json.dumps(content, default=_plain)
        found: dict[str, Any] = self._send(method, what, body, **query).json()
        return found

    def _send(self, method: str, what: str, body: str | None, **query: Any) -> Any:
        """The answer to a request."""
        url, deadline = f"{self.url}/{what}".rstrip("/"), time.monotonic() + self.patience
        while True:
            try:
                answer = self._http.request(method, url, content=body, params=_given(**query))
            except self._failed as error:
                raise DataError(f"no service answers at {url}: {error}; start one with rue serve FOLDER.") from error
            if answer.status_code != 429 or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if answer.status_code >= 400:
            raise DataError(_why(answer))
        return answer


def _given(**content: Any) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value is not None}


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def _why(answer: Any) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {answer.status_code}."
