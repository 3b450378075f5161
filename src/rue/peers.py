"""Other systems at their defaults, given the same features one example after the other: VW, River, scikit-learn.

They are imported, or started, when one is opened. Each says what it predicts before it learns, as the loss takes it:
for logistic loss the log-odds. An example of weight 0 is predicted and not learnt, as everywhere.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from rue.errors import RueError, SettingsError
from rue.losses import Logistic, Square
from rue.streams import Block

__all__ = ["PEERS", "Broken", "Peer", "installed", "open_peer"]


FULL = 512
"""Up to so many features River is given the zeros of a sparse row too."""


class Broken(RueError):
    """A peer that cannot go on: its numbers are no numbers any more."""


class Peer(Protocol):
    """A learner of another system."""

    about: str
    """What it is, in its own system's words."""
    note: str
    """What to know when reading its seconds."""

    def learn(self, block: Block) -> Any:
        """Predict and then learn each row of a block whose labels are as the loss takes them."""
        ...

    def close(self) -> None:
        """No more examples."""
        ...

    @property
    def seconds(self) -> float:
        """Processor time spent so far, or of all of it after `close`."""
        ...


def _rows(block: Block) -> Iterator[tuple[Any, list[float]]]:
    """The columns and the values of each row."""
    if not block.sparse:
        columns = range(block.width)
        for row in np.asarray(block.X, dtype=np.float64):
            yield columns, row.tolist()
        return
    X = block.X
    for begin, end in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        yield X.indices[begin:end].tolist(), X.data[begin:end].tolist()


def _weights(block: Block) -> list[float]:
    column = block.column_of_weights()
    return column.tolist() if column.size else [1.0] * len(block)


class VowpalWabbit:
    """`python -m vowpalwabbit`, a process of its own that is sent VW text and sends predictions back."""

    note = "its seconds include reading text"

    def __init__(self, loss: Any, intercept: bool) -> None:
        self.arguments = ["--loss_function", "logistic" if isinstance(loss, Logistic) else "squared"]
        self.arguments += [] if intercept else ["--noconstant"]
        self.about = "vw " + " ".join(self.arguments)
        self.process: Any = None
        self.seconds = 0.0

    def _start(self, block: Block) -> None:
        bits = max(18, block.width.bit_length(), 24 if block.sparse else 0)  # so that features do not collide
        settings = [*self.arguments, "-b", str(bits), "--quiet", "-d", "/dev/stdin", "-p", "/dev/stdout"]
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  # closed in `close`
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vowpalwabbit", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
        )

    def learn(self, block: Block) -> Any:
        if self.process is None:
            self._start(block)
        lines = []
        for (columns, values), y, weight in zip(_rows(block), block.labels().tolist(), _weights(block), strict=True):
            features = " ".join(f"{j}:{x!r}" for j, x in zip(columns, values, strict=True) if x)
            lines.append(f"{y!r} {weight!r} | {features}\n")
        sender = threading.Thread(target=self._send, args=("".join(lines).encode("ascii"),), daemon=True)
        sender.start()
        out = np.empty(len(block))
        for i in range(len(block)):
            line = self.process.stdout.readline()
            if not line:
                self.said.seek(0)
                why = self.said.read().decode("utf-8", "replace").strip().splitlines()
                raise Broken(f"Vowpal Wabbit stopped: {why[-1] if why else 'it says nothing'}")
            out[i] = float(line.split()[0])
        sender.join()
        return out

    def _send(self, text: bytes) -> None:
        with contextlib.suppress(OSError):  # when it has stopped, which the other end sees too
            self.process.stdin.write(text)
            self.process.stdin.flush()

    def close(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process = None
        self.said.close()
        self.seconds = used.ru_utime + used.ru_stime


class _OneByOne:
    """Predict and learn one row at a time, in this process."""

    note = "example by example"
    about: str

    def __init__(self) -> None:
        self.seconds = 0.0

    def example(self, x: Any, y: float, weight: float) -> float:
        """The prediction made before learning."""
        raise NotImplementedError

    def examples(self, block: Block) -> Iterator[Any]:
        """The rows as this system takes them."""
        raise NotImplementedError

    def learn(self, block: Block) -> Any:
        out = np.empty(len(block))
        columns = zip(self.examples(block), block.labels().tolist(), _weights(block), strict=True)
        try:
            for i, (x, y, weight) in enumerate(columns):
                started = time.thread_time()
                out[i] = self.example(x, y, weight)
                self.seconds += time.thread_time() - started
        except (ArithmeticError, ValueError) as error:
            raise Broken(f"{type(self).__name__} gave up: {error}") from error
        return out

    def close(self) -> None:
        pass


class River(_OneByOne):
    """`StandardScaler | LogisticRegression` or `LinearRegression`, by dicts.

    Of up to `FULL` features every one is in the dict: the scaler takes a feature that is left out for unknown, not 0,
    and finds that one which is always 1 when it is there says nothing.
    """

    def __init__(self, loss: Any, intercept: bool) -> None:
        from river import linear_model, preprocessing

        super().__init__()
        self.classes = isinstance(loss, Logistic)
        made = linear_model.LogisticRegression if self.classes else linear_model.LinearRegression
        model: Any = made() if intercept else made(intercept_lr=0.0)
        self.model: Any = preprocessing.StandardScaler() | model
        self.about = f"river {self.model}"
        self.width = 0

    def examples(self, block: Block) -> Iterator[Any]:
        self.width = max(self.width, block.width)
        zeros = dict.fromkeys(range(self.width), 0.0) if self.width <= FULL else {}
        return (zeros | dict(zip(columns, values, strict=True)) for columns, values in _rows(block))

    def example(self, x: Any, y: float, weight: float) -> float:
        if self.classes:
            chance = self.model.predict_proba_one(x).get(True, 0.5)
            chance = min(max(chance, 1e-15), 1.0 - 1e-15)  # as River's own log loss has it
            p = math.log(chance / (1.0 - chance))
        else:
            p = float(self.model.predict_one(x))
        if weight > 0.0:
            self.model.learn_one(x, y > 0.0 if self.classes else y, w=weight)
        return p


class ScikitLearn(_OneByOne):
    """`SGDClassifier(loss="log_loss")` or `SGDRegressor()` by `partial_fit`, which wants all columns it ever sees."""

    def __init__(self, loss: Any, intercept: bool) -> None:
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        super().__init__()
        self.classes = isinstance(loss, Logistic)
        made = (SGDClassifier, {"loss": "log_loss"}) if self.classes else (SGDRegressor, {})
        self.model: Any = made[0](**made[1], **({} if intercept else {"fit_intercept": False}))
        self.about = f"sklearn {self.model!r}"
        self.width = 0

    def examples(self, block: Block) -> Iterator[Any]:
        self._widen(block.width)
        if not block.sparse:
            X = np.ascontiguousarray(block.X, dtype=np.float64)
            return (X[i : i + 1] for i in range(len(X)))
        return self._sparse(block)

    def _sparse(self, block: Block) -> Iterator[Any]:
        from scipy.sparse import csr_matrix

        X, data = block.X, np.asarray(block.X.data, dtype=np.float64)
        for begin, end in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
            ends = np.array([0, end - begin], dtype=np.int32)
            yield csr_matrix((data[begin:end], X.indices[begin:end], ends), shape=(1, self.width))

    def _widen(self, width: int) -> None:
        """A stream of text may grow wider: new columns have weight 0."""
        known = self.width
        self.width = max(self.width, width)
        if hasattr(self.model, "coef_") and self.width > known:
            more = [(0, 0)] * (self.model.coef_.ndim - 1) + [(0, self.width - known)]
            self.model.coef_ = np.pad(self.model.coef_, more)
            self.model.n_features_in_ = self.width

    def learn(self, block: Block) -> Any:
        from sklearn import config_context

        with config_context(assume_finite=True, skip_parameter_validation=True), np.errstate(all="ignore"):
            return super().learn(block)

    def example(self, x: Any, y: float, weight: float) -> float:
        p = 0.0
        if hasattr(self.model, "coef_"):
            p = float((self.model.decision_function if self.classes else self.model.predict)(x)[0])
        if weight > 0.0:
            more = {"classes": [-1.0, 1.0]} if self.classes else {}
            self.model.partial_fit(x, [y], sample_weight=[weight], **more)
        return p


PEERS: dict[str, tuple[str, Callable[[Any, bool], Peer]]] = {
    "vw": ("vowpalwabbit", VowpalWabbit),
    "river": ("river", River),
    "sklearn": ("sklearn", ScikitLearn),
}
"""By the name one types: the module that must be installed, and what opens the peer."""
_PACKAGES = {"sklearn": "scikit-learn"}


def installed(name: str) -> bool:
    """Whether a peer is there."""
    return importlib.util.find_spec(PEERS[name][0]) is not None


def open_peer(name: str, loss: Any, intercept: bool) -> Peer:
    """A peer that has learnt nothing yet."""
    module, made = PEERS[name]
    if not installed(name):
        package = _PACKAGES.get(module, module)
        raise SettingsError(f"{name} is not installed: pip install {package}, or leave it out of --learners.")
    if not isinstance(loss, Logistic | Square):
        raise SettingsError(
            f"{name} runs at its defaults, for logistic and square loss, not for {loss!r}: leave it out."
        )
    return made(loss, intercept)
