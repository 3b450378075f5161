"""Peers: other systems as their documentation recommends them: Vowpal Wabbit, River, scikit-learn.

All are given the same examples one by one. A peer is imported, or started as a process, when it is opened. It predicts
each example before it learns it, on the scale of the loss: log-odds for logistic loss, the score of `LogLoss` for more
than two classes. An example of weight 0 is predicted and not learnt, as everywhere in rue. Vowpal Wabbit and
scikit-learn must know the number of classes before they start. So all three peers are told it, and begin with equal
probabilities; rue's learners discover the classes.

Gradient descent with a rate wants features of one size. Vowpal Wabbit scales them itself. The two others get the online
scaler of their own library in front: `StandardScaler`, or for sparse rows `MaxAbsScaler`, which keeps zeros, and leaves
features that are 0 or 1 as they are. Columns that hashing has left empty are not there for them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from rue.errors import RueError, SettingsError
from rue.streams import Block

__all__ = ["LEAST", "LIMIT", "PEERS", "Broken", "Peer", "TooSlow", "installed", "open_peer", "takes_part"]

LEAST = 1e-15
"""The least probability that River counts with, as its own log loss has it, and of a class a peer does not know."""

FULL = 512
"""If the first rows, sparse ones, have up to so many features, River and scikit-learn are given their zeros too."""

LIMIT = 60.0
"""Seconds that a peer may work, by default."""


class Broken(RueError):
    """A peer that cannot go on: its numbers are no numbers any more."""


class TooSlow(RueError):
    """A peer that has worked as long as it may; `predictions` are those it made of the block it was given."""

    def __init__(self, predictions: Any) -> None:
        super().__init__("it has worked as long as it may")
        self.predictions = predictions


class Peer(Protocol):
    """A learner of another system, as a race drives it."""

    limit: float
    """Seconds that it may work."""

    @property
    def about(self) -> str:
        """What it is, in its own system's words."""
        ...

    @property
    def note(self) -> str:
        """What to know when reading its numbers."""
        ...

    def look_at(self, block: Block) -> None:
        """See which features a block has, before it is learnt part by part."""
        ...

    def learn(self, block: Block) -> Any:
        """Predict and then learn each row of a block whose labels are as the loss takes them; may raise `TooSlow`."""
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
    """One weight for each row."""
    column = block.column_of_weights()
    return column.tolist() if column.size else [1.0] * len(block)


def _score(chances: Mapping[float, float], y: float) -> float:
    """The probability of class y, negative where another one was given at least as much."""
    chance = max(chances.get(y, 0.0), LEAST)
    return -chance if any(other >= chance for c, other in chances.items() if c != y) else chance


def _classes_note(classes: int) -> str:
    """The end of a note in the table; empty where there are two classes, or none."""
    return f"; told of {classes} classes before it starts" if classes else ""


class VowpalWabbit:
    """`python -m vowpalwabbit`, a process of its own that is sent VW text and sends predictions back.

    Of more than two classes it learns one against all, `--oaa`. An example of a class that it does not know is sent
    without a label.
    """

    def __init__(self, loss: Any, intercept: bool, classes: int) -> None:
        self.classes = classes
        self.note = f"its seconds include reading text{_classes_note(classes)}"
        self.arguments = ["--loss_function", "squared" if loss.quadratic else "logistic"]
        self.arguments += ["--oaa", str(classes), "--probabilities"] if classes else []
        self.arguments += [] if intercept else ["--noconstant"]
        self.about = "vw " + " ".join(self.arguments)
        self.process: Any = None
        self.seconds, self.limit, self.waited = 0.0, LIMIT, 0.0

    def _start(self, block: Block) -> None:
        """Start the process, with so many bits that the features of this stream do not collide."""
        many = min(28, (block.width * self.classes).bit_length())  # a feature has a weight for each class
        bits = max(18, block.width.bit_length(), many, 24 if block.sparse else 0)  # so that features do not collide
        settings = [*self.arguments, "-b", str(bits), "--quiet", "-d", "/dev/stdin", "-p", "/dev/stdout"]
        # Not a pipe: nothing reads it before the process ends, and a full pipe would stop it. Closed in `close`.
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vowpalwabbit", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
        )

    def look_at(self, block: Block) -> None:
        """Nothing: it hashes what comes."""

    def learn(self, block: Block) -> Any:
        if self.process is None:
            self._start(block)
        lines = []
        for (columns, values), y, weight in zip(_rows(block), block.labels().tolist(), _weights(block), strict=True):
            features = " ".join(f"{j}:{x!r}" for j, x in zip(columns, values, strict=True) if x)
            lines.append(f"{self._label(y, weight)} | {features}\n")
        sender = threading.Thread(target=self._send, args=("".join(lines).encode("ascii"),), daemon=True)
        sender.start()
        out, started = np.empty(len(block)), time.monotonic() - self.waited
        for i, y in enumerate(block.labels().tolist()):
            self.waited = time.monotonic() - started
            if self.waited > self.limit:
                self.process.kill()
                sender.join()
                raise TooSlow(out[:i])
            line = self.process.stdout.readline()
            if not line:
                self.stderr.seek(0)
                why = self.stderr.read().decode("utf-8", "replace").strip().splitlines()
                raise Broken(f"Vowpal Wabbit stopped: {why[-1] if why else 'it says nothing'}")
            out[i] = _score(_chances(line), y) if self.classes else float(line.split()[0])
        sender.join()
        return out

    def _label(self, y: float, weight: float) -> str:
        """The label as VW writes it; nothing for a class that it was not started for, which is then only predicted."""
        if not self.classes:
            return f"{y!r} {weight!r}"
        return f"{y:.0f} {weight!r}" if y <= self.classes else ""

    def _send(self, text: bytes) -> None:
        """Write to the process; in a thread of its own, since both pipes may be full at once."""
        with contextlib.suppress(OSError):  # when it has stopped, which the other end sees too
            self.process.stdin.write(text)
            self.process.stdin.flush()

    def close(self) -> None:
        """End the process, and add what it used of the processors."""
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process = None
        self.stderr.close()
        self.seconds = used.ru_utime + used.ru_stime


def _chances(line: bytes) -> dict[float, float]:
    """What Vowpal Wabbit prints of classes, such as `1:0.25 2:0.75`."""
    pairs = (word.split(b":") for word in line.split() if b":" in word)
    return {float(c): float(chance) for c, chance in pairs}


class _OneByOne:
    """Predict and learn one row at a time, in this process."""

    least_filled = 0.0
    """From which share of numbers other than 0 on sparse rows are given with their zeros, if `FULL` allows it."""

    def __init__(self, classes: int) -> None:
        self.many, self.seconds, self.limit = classes, 0.0, LIMIT
        self.places: dict[int, int] = {}
        """The features of sparse rows that have come, numbered in this order."""
        self.zeros: bool | None = None
        """Whether sparse rows are given with their zeros, which the first block decides."""

    @property
    def note(self) -> str:
        return f"example by example, {self._scaler()} first{_classes_note(self.many)}"

    def _scaler(self) -> str:
        """The name of the scaler, which River and scikit-learn call alike."""
        return "MaxAbsScaler" if self.zeros is False else "StandardScaler"

    def look_at(self, block: Block) -> None:
        """Number the features that are new."""
        if not block.sparse:
            self.zeros = True
            return
        X = block.X
        for j in np.unique(X.indices[X.indptr[0] : X.indptr[-1]]).tolist():
            self.places.setdefault(j, len(self.places))
        if self.zeros is None:
            filled = int(X.indptr[-1] - X.indptr[0]) >= self.least_filled * len(block) * len(self.places)
            self.zeros = filled and len(self.places) <= FULL

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
                if self.seconds > self.limit:
                    raise TooSlow(out[:i])
                started = time.thread_time()
                out[i] = self.example(x, y, weight)
                self.seconds += time.thread_time() - started
        except (ArithmeticError, ValueError) as error:
            raise Broken(f"{type(self).__name__} gave up: {error}") from error
        return out

    def close(self) -> None:
        pass


class River(_OneByOne):
    """`StandardScaler | LogisticRegression` or `LinearRegression`, by dicts; of many classes `SoftmaxRegression`.

    The last has no intercept and takes no weights, and learns classes that it was not told of too. A `StandardScaler`
    takes a feature that is left out of the dict for unknown, not 0, and finds that one which is always 1 when it is
    there says nothing. So up to `FULL` features are all in the dict, and with more the scaler is `MaxAbsScaler`.
    """

    def __init__(self, loss: Any, intercept: bool, classes: int) -> None:
        from river import linear_model, preprocessing

        super().__init__(classes)
        self.classes = loss.log_odds
        if classes:
            model: Any = linear_model.SoftmaxRegression()
            for c in range(1, 1 + classes):
                model.weights[float(c)]  # a defaultdict, in which every class begins with weights of 0
        else:
            kind = linear_model.LogisticRegression if self.classes else linear_model.LinearRegression
            model = kind() if intercept else kind(intercept_lr=0.0)
        self.scalers = preprocessing
        self.linear: Any = model
        self.model: Any = None

    @property
    def note(self) -> str:
        return f"{super().note}{'; no intercept' if self.many else ''}"

    @property
    def about(self) -> str:
        return f"river {self._scaler()} | {type(self.linear).__name__}"

    def examples(self, block: Block) -> Iterator[Any]:
        self.look_at(block)
        if self.model is None:
            self.model = getattr(self.scalers, self._scaler())() | self.linear
        zeros = dict.fromkeys(itertools.islice(self.places, FULL), 0.0) if self.zeros else {}
        return (zeros | dict(zip(columns, values, strict=True)) for columns, values in _rows(block))

    def example(self, x: Any, y: float, weight: float) -> float:
        if self.many:
            if weight not in (0.0, 1.0):
                raise ValueError("its softmax regression takes no weights")
            p = _score(self.model.predict_proba_one(x), y)
            if weight:
                self.model.learn_one(x, y)
            return p
        if self.classes:
            chance = self.model.predict_proba_one(x).get(True, 0.5)
            chance = min(max(chance, LEAST), 1.0 - LEAST)
            p = math.log(chance / (1.0 - chance))
        else:
            p = float(self.model.predict_one(x))
        if weight > 0.0:
            self.model.learn_one(x, y > 0.0 if self.classes else y, w=weight)
        return p


class ScikitLearn(_OneByOne):
    """`SGDClassifier(loss="log_loss")` or `SGDRegressor()` by `partial_fit`, behind a scaler that learns so too.

    It is `MaxAbsScaler` where more than half of the features of a row are 0, mostly indicators, which the
    documentation says need no scaling: on 4,000 rows of the census, log loss 5.5; with `StandardScaler` 38.5. The
    scaler sees the features of an example before it is predicted, never its label. Both want all columns they ever
    see: one that is new has been 0 so far. Of more than two classes it learns one against all, and only those that
    it knew at the start.
    """

    least_filled = 0.5

    def __init__(self, loss: Any, intercept: bool, classes: int) -> None:
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        super().__init__(classes)
        self.classes = not loss.quadratic
        self.labels = [1.0 + c for c in range(classes)] or [-1.0, 1.0]
        settings = {} if intercept else {"fit_intercept": False}
        self.model: Any = SGDClassifier(loss="log_loss", **settings) if self.classes else SGDRegressor(**settings)
        self.scaler: Any = None
        self.width = 0

    @property
    def about(self) -> str:
        return f"sklearn {self._scaler()}() | {self.model!r}"

    def examples(self, block: Block) -> Iterator[Any]:
        from sklearn import preprocessing

        self.look_at(block)
        if self.scaler is None:
            self.scaler = getattr(preprocessing, self._scaler())()
        self._widen(len(self.places) if block.sparse else block.width)
        if not block.sparse:
            X = np.ascontiguousarray(block.X, dtype=np.float64)
            return (X[i : i + 1] for i in range(len(X)))
        return self._sparse(block)

    def _sparse(self, block: Block) -> Iterator[Any]:
        """The rows of a sparse block one by one, features at the places where they have occurred."""
        from scipy.sparse import csr_matrix

        for columns, values in _rows(block):
            places = [self.places[j] for j in columns]
            x = csr_matrix((values, places, [0, len(places)]), shape=(1, self.width))
            yield x.toarray() if self.zeros else x

    def _widen(self, width: int) -> None:
        """A stream of text may grow wider: new columns have weight 0, and have been 0 for the scaler."""
        more = width - self.width
        if more <= 0:
            return
        if hasattr(self.scaler, "n_features_in_"):
            for name, value in (("mean_", 0.0), ("var_", 0.0), ("max_abs_", 0.0), ("scale_", 1.0)):
                if hasattr(self.scaler, name):
                    setattr(self.scaler, name, np.append(getattr(self.scaler, name), np.full(more, value)))
            self.scaler.n_features_in_ = width
        if hasattr(self.model, "coef_"):
            self.model.coef_ = np.pad(self.model.coef_, [(0, 0)] * (self.model.coef_.ndim - 1) + [(0, more)])
            self.model.n_features_in_ = width
        self.width = width

    def learn(self, block: Block) -> Any:
        from sklearn import config_context

        with config_context(assume_finite=True, skip_parameter_validation=True), np.errstate(all="ignore"):
            return super().learn(block)

    def example(self, x: Any, y: float, weight: float) -> float:
        p, begun = 0.0, hasattr(self.model, "coef_")
        if weight > 0.0:
            self.scaler.partial_fit(x)
        x = self.scaler.transform(x) if hasattr(self.scaler, "scale_") else x
        if self.many:
            chances = self.model.predict_proba(x)[0].tolist() if begun else [1.0 / self.many] * self.many
            p = _score(dict(zip(self.labels, chances, strict=True)), y)
        elif begun:
            p = float((self.model.decision_function if self.classes else self.model.predict)(x)[0])
        if weight > 0.0 and (not self.many or y <= self.many):
            more = {"classes": self.labels} if self.classes else {}
            self.model.partial_fit(x, [y], sample_weight=[weight], **more)
        return p


PEERS: dict[str, tuple[str, Callable[[Any, bool, int], Peer]]] = {
    "vw": ("vowpalwabbit", VowpalWabbit),
    "river": ("river", River),
    "sklearn": ("sklearn", ScikitLearn),
}
"""By the name one types: the module that must be installed, and what opens the peer."""
_PACKAGES = {"sklearn": "scikit-learn"}


def installed(name: str) -> bool:
    """Whether a peer is there."""
    return importlib.util.find_spec(PEERS[name][0]) is not None


def takes_part(loss: Any) -> bool:
    """Whether the peers know a loss."""
    return bool(loss.log_odds or loss.quadratic or loss.task == "multiclass")


def open_peer(name: str, loss: Any, intercept: bool, classes: int = 0) -> Peer:
    """A peer that has learnt nothing yet; of more than two classes it gets their number."""
    module, opens = PEERS[name]
    if not installed(name):
        package = _PACKAGES.get(module, module)
        raise SettingsError(f"{name} is not installed: pip install {package}, or leave it out of --learners.")
    if not takes_part(loss):
        raise SettingsError(f"{name} takes part for logistic and square loss, not for {loss!r}: leave it out.")
    return opens(loss, intercept, max(classes, 2) if loss.task == "multiclass" else 0)
