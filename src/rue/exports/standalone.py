"""A model as `rue export` wrote it, in plain Python: the standard library is enough.

`score(row)` is what `rue predict` writes, and `predict(row)` says what it means. A row is a dict of columns for a model
of a table, a dict of names for one that learnt from dicts, a line of text for one of Vowpal Wabbit's text, and else a
list of numbers or a dict {index: number}. As a program it reads such rows as JSON, one a line, and writes the answers.
"""

from __future__ import annotations

import bisect
import datetime
import itertools
import json
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Model", "serve"]

LOW = 2**32 - 1
PRIME, BLANK = 16777619, 32  # of the hash FNV-1; the letter of a namespace without a name
DAY = datetime.timedelta(days=1)
EPOCH = datetime.datetime(1970, 1, 1)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def rotated(x: int, bits: int) -> int:
    return (x << bits | x >> 32 - bits) & LOW


def finished(h: int) -> int:
    """The last steps of MurmurHash3-32."""
    h = (h ^ h >> 16) * 0x85EBCA6B & LOW
    h = (h ^ h >> 13) * 0xC2B2AE35 & LOW
    return h ^ h >> 16


def murmur3(data: bytes, seed: int = 0) -> int:
    """MurmurHash3-32 of some bytes (Appleby 2011).

    >>> murmur3(b"hello"), murmur3(b"hello", seed=1)
    (613153351, 3142237357)
    """
    h = seed & LOW
    for i in range(0, len(data), 4):
        word = int.from_bytes(data[i : i + 4], "little")
        h ^= rotated(word * 0xCC9E2D51 & LOW, 15) * 0x1B873593 & LOW
        if i + 4 <= len(data):
            h = (rotated(h, 13) * 5 + 0xE6546B64) & LOW
    return finished(h ^ len(data))


def combined(a: int, b: int) -> int:
    """32 bits that depend on two numbers and their order."""
    return finished((finished(a & LOW) + (b * 0x9E3779B1 & LOW)) & LOW)


# From a row to its features: {index: value}.


class Table:
    """The columns of a table: numbers have an index of their own, words are hashed as `column=word`."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns, self.own = columns, list(columns["own"])
        self.slots = columns.get("slots", len(self.own))
        self.starts, self.mask = dict(columns["starts"]), 2 ** columns["bits"] - 1
        self.patterns = [re.compile(pattern) for pattern in columns["patterns"]]

    def features(self, row: dict[str, Any]) -> dict[int, float]:
        found: dict[int, float] = {}
        for name, kind in self.columns["plan"]:
            if name not in row:
                raise ValueError(f"the column {name!r} is missing: give None for a missing value.")
            for feature, value in self.of_column(name, kind, row[name]):
                if value:
                    found[feature] = found.get(feature, 0.0) + value
        for names in self.columns["crosses"]:
            feature = self.word("×".join(names), "×".join(self.as_word(name, row[name]) for name in names))
            found[feature] = found.get(feature, 0.0) + 1.0
        for binned in self.columns.get("bins", ()):
            number = self.number(binned["column"], row[binned["column"]])
            if number is not None and binned["quantiles"] is not None:
                rank = bisect.bisect_right(binned["quantiles"], number)
                found[binned["first"] + rank * binned["bins"] // 256] = 1.0
        return found

    def as_word(self, name: str, value: Any) -> str:
        """A cell of a column that is crossed, as text."""
        kind = dict(self.columns["plan"])[name]
        if kind == "category":
            return as_text(value)
        number = self.number(name, value)
        return as_text(bool(number) if kind == "boolean" and number is not None else number)

    def word(self, name: str, text: str) -> int:
        """The index of `name=text`."""
        return int(self.slots + (murmur3(f"{name}={text}".encode()) & self.mask))

    def of_column(self, name: str, kind: str, value: Any) -> Iterator[tuple[int, float]]:
        """The features that a cell becomes."""
        if kind == "category":
            yield self.word(name, as_text(value)), 1.0
        elif kind == "text":
            found = words(as_text(value)) if as_text(value) else [""]
            pairs = [f"{a} {b}" for a, b in itertools.pairwise(found)] if self.columns["word_pairs"] else []
            for word in [*found, *pairs]:
                yield self.word(name, word), 1.0
        elif kind in ("number", "boolean"):
            number = self.number(name, value)
            yield (self.word(name, ""), 1.0) if number is None else (self.own.index(name), number)
        else:
            yield from self.of_moment(name, kind, self.moment(name, kind, value))

    def number(self, name: str, value: Any) -> float | None:
        """A number; None for one that is missing."""
        if isinstance(value, str):
            text = value.strip()
            if text in self.columns["missing"]:
                return None
            if text.lower() in ("true", "false"):
                return float(text.lower() == "true")
            if self.columns["decimal"] == ",":
                text = re.sub("[. '’]", "", text).replace(",", ".")
            value = float(text)
        if value is None or value != value:
            return None
        if math.isinf(value):
            raise ValueError(f"the column {name!r} holds an infinity.")
        return float(value)

    def moment(self, name: str, kind: str, value: Any) -> tuple[datetime.datetime, datetime.timedelta] | None:
        """The day, at midnight, and the time since then; None for one that is missing."""
        if value is None or value != value or (isinstance(value, str) and value.strip() in self.columns["missing"]):
            return None
        if isinstance(value, str):
            text = re.sub(r"^(\d):", r"0\1:", value.strip())
            value = datetime.time.fromisoformat(text) if kind == "time" else self.date(text)
        if isinstance(value, datetime.timedelta):
            days, part = divmod(value, DAY)
            return EPOCH + days * DAY, part
        if isinstance(value, datetime.time):
            value = datetime.datetime.combine(EPOCH, value)
        elif not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        day = datetime.datetime(value.year, value.month, value.day)
        return day, value - day

    def date(self, text: str) -> datetime.datetime:
        """A date by ISO 8601, or as the model's dates are written."""
        for pattern in self.patterns:
            parts = pattern.match(text)
            if parts:
                day, month, year = parts["day"], parts["month"], parts["year"]
                if month[:3].lower() in MONTHS:
                    month = MONTHS.index(month[:3].lower()) + 1
                if len(year) == 2:
                    year = ("20" if year < "69" else "19") + year
                clock = re.sub(r"^(\d):", r"0\1:", parts["time"] or "")
                text = f"{year}-{int(month):02}-{int(day):02}" + (f" {clock}" if clock else "")
        return datetime.datetime.fromisoformat(text)

    def of_moment(
        self, name: str, kind: str, moment: tuple[datetime.datetime, datetime.timedelta] | None
    ) -> Iterator[tuple[int, float]]:
        """The features of a date, a time of day or a duration."""
        if moment is None:
            yield self.word(name, ""), 1.0
            return
        day, part = moment
        new, calendar = self.columns["version"] > 1, kind in ("timestamp", "date")
        start = self.starts.get(name, 0) if new else 0
        yield self.own.index(name), ((day - EPOCH).days - start) + part / DAY
        if new and calendar:
            yield self.own.index(f"{name}.day_of_year"), float(day.timetuple().tm_yday)
        if kind == "time" or (kind == "timestamp" and not new) or (part and new and calendar):
            yield self.word(f"{name}.hour", str(part.seconds // 3600)), 1.0
        if calendar:
            yield self.word(f"{name}.weekday", WEEKDAYS[day.weekday()]), 1.0


def as_text(value: Any) -> str:
    """A cell as a word: "" if it is missing, 1.0 as 1."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(value)


def words(text: str) -> list[str]:
    """Runs of letters and digits, and of the marks that belong to them, in lower case."""
    found, word = [], ""
    for letter in text:
        if letter.isalnum():
            small = letter.lower()
            word += small if len(small) == 1 else letter
        elif word and unicodedata.category(letter)[0] == "M":
            word += letter
        elif word:
            found.append(word)
            word = ""
    return [*found, word] if word else found


class Line:
    """The features of a line of Vowpal Wabbit's text; those of some pairs of namespaces are multiplied."""

    def __init__(self, bits: int, interact: list[str]) -> None:
        self.mask, self.interact = 2**bits - 1, interact

    def features(self, line: str) -> dict[int, float]:
        read: list[tuple[int, int, float]] = []
        for part in line.strip().split("|")[1:]:
            names, seed, scale, letter = part.split(), 0, 1.0, BLANK
            if part[:1] not in ("", " ", "\t"):
                space, _, weight = names.pop(0).partition(":")
                seed, scale = int(space) if space.isdecimal() else murmur3(space.encode()), float(weight or 1.0)
                letter = space.encode()[0]
            for name in names:
                index, value = self.feature(name, seed, scale)
                read.append((letter, index & self.mask, value))
        found: dict[int, float] = {}
        for index, value in [*((index, value) for _, index, value in read), *self.products(read)]:
            found[index] = found.get(index, 0.0) + value
        return found

    def feature(self, name: str, seed: int, scale: float) -> tuple[int, float]:
        """The index and the value of a word of a line."""
        name, colon, text = name.partition(":")
        index = (int(name) + seed if name.isdecimal() else murmur3(name.encode(), seed)) if name else seed
        if not colon:
            return index, scale
        try:
            return index, float(text) * scale
        except ValueError:  # a word
            return murmur3(text.encode(), index & LOW), 1.0

    def products(self, read: list[tuple[int, int, float]]) -> Iterator[tuple[int, float]]:
        """What is multiplied: each pair of features once, in the order that the namespaces are given in."""
        for n, (a, i, x) in enumerate(read if self.interact else []):
            for b, j, y in read[n:]:
                order = self.order(a, b)
                if order:
                    first, second = (i, j) if order > 0 else (j, i)
                    yield (PRIME * first ^ second) & self.mask, x * y

    def order(self, a: int, b: int) -> int:
        """1 if features of namespaces with these first letters are multiplied, −1 if so the other way round, or 0."""
        for pair in self.interact:
            if pair == "::":
                return 1 if a <= b else -1
            for order, ends in ((1, (a, b)), (-1, (b, a))):
                if all(letter in (":", chr(end)) for letter, end in zip(pair, ends, strict=True)):
                    return order
        return 0


class Numbers:
    """Features by their number: a list of all, or a dict of those that are not 0."""

    def features(self, row: Any) -> dict[int, float]:
        pairs = row.items() if isinstance(row, dict) else enumerate(row)
        return {int(j): float(value) for j, value in pairs if value}


class Named:
    """Features by name: a word is `name=word`, a missing value `name=`, a date its parts; unknown names count 0."""

    def __init__(self, places: dict[str, int]) -> None:
        self.places = places

    def features(self, row: dict[str, Any]) -> dict[int, float]:
        found: dict[int, float] = {}
        for name, value in row.items():
            for feature, number in self.parts(name, value):
                place = self.places.get(feature)
                if place is not None and number:
                    found[place] = found.get(place, 0.0) + number
        return found

    def parts(self, name: str, value: Any) -> Iterator[tuple[str, float]]:
        if isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif value is None or value != value:
            yield f"{name}=", 1.0
        elif isinstance(value, datetime.date):
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                value = value.astimezone(datetime.UTC)
            yield f"{name}.day_of_year", float(value.timetuple().tm_yday)
            if isinstance(value, datetime.datetime) and value.time() != datetime.time():
                yield f"{name}.hour={value.hour}", 1.0
            yield f"{name}.weekday={WEEKDAYS[value.weekday()]}", 1.0
        else:
            yield name, float(value)


# Stages over maps of the features.


class Stages:
    """A linear stage, stages over bins, pairs and random trees, and one over the predictions of all."""

    def __init__(self, stages: dict[str, Any]) -> None:
        self.stages, self.table = stages, stages["table"]
        self.traits = sparse(stages["traits"])
        self.weights = [sparse(weights) for weights in stages["weights"]]
        self.mask = stages["mask"]

    def score(self, x: dict[int, float], first: float, clip: Callable[[float], float]) -> float:
        stages = self.stages
        raw = clip(first)
        predictions, shares = [raw], stages["shares"]
        total: float = shares[0] * raw
        tokens = Tokens(self.table, self.traits, x, self.standard(raw))
        for k, kind in enumerate(stages["kinds"]):
            p = raw
            if kind is not None:
                if kind["map"] == "stages":
                    seen = {j: self.standard(prediction) for j, prediction in enumerate(predictions)}
                else:
                    seen = {0: self.standard(raw)}
                    for number in tokens.pairs(kind) if kind["map"] == "pairs" else tokens.trees(kind):
                        feature = 1 + (number & self.mask)
                        seen[feature] = seen.get(feature, 0.0) + 1.0
                p = clip(stages["intercepts"][k] + dot(self.weights[k], seen))
            predictions.append(p)
            total += shares[k + 1] * p
        return total

    def standard(self, p: float) -> float:
        """A prediction from the labels' centre, in their units."""
        centre, unit = self.stages["centre"], self.stages["unit"]
        return (p - centre) / unit if unit > 0.0 else 0.0


class Tokens:
    """A row as maps see it: for each column its rank or the number of its value, and 32 bits for each thing it says."""

    def __init__(self, table: dict[str, Any], traits: dict[int, Any], x: dict[int, float], prediction: float) -> None:
        self.table = table
        self.tokens: list[int] = []
        self.owners: list[int] = []
        self.active: list[Any] = table["columns"][: table["active"]] if table["active"] > 1 else []
        if not table["open"]:
            self.active = []
            return
        values, marks, there = [0.0] * len(table["columns"]), 0, set()
        values[0] = prediction
        for j, value in x.items():
            if value != 0.0 and j in traits:
                column = traits[j][1]
                if column:
                    values[column - 1] = value
                marks += not column
                there.add(j)
        self.ranks = [sum(q <= v for q in of["quantiles"]) for of, v in zip(self.active, values, strict=False)]
        self.places = [
            of["numbers"].index(v) if v in of["numbers"] else -1 for of, v in zip(self.active, values, strict=False)
        ]
        for c, of in enumerate(self.active):
            if of["ranked"]:
                self.add(combined(of["name"], 3000 + (self.ranks[c] >> 5)), c)
            elif self.places[c] >= 0:
                self.add(combined(of["name"], 1000 + self.places[c]), c)
        if marks <= table["most_marks"]:
            for j in sorted(x):
                if j in traits and traits[j][1] == 0 and x[j] != 0.0 and x[j] == traits[j][0]:
                    self.add(combined(j, 1), -1)
            for j in table["low"]:
                if j not in there:
                    self.add(combined(j, 2), -1)

    def add(self, token: int, owner: int) -> None:
        self.tokens.append(token)
        self.owners.append(owner)

    def pairs(self, kind: dict[str, Any]) -> Iterator[int]:
        """Bins of every column, and crosses of all pairs of tokens; with many, of the columns that tell most."""
        for c, of in enumerate(self.active):
            name, rank = of["name"], self.ranks[c]
            if of["ranked"]:
                yield combined(name, 16 + (rank >> 4))
                if len(self.active) <= kind["fine"] + 1:
                    yield combined(name, 4 + (rank >> 6))
                    yield combined(name, 64 + (rank >> 2))
            elif self.places[c] >= 0:
                yield combined(name, 2000 + self.places[c])
        if kind["crosses"]:
            few = len(self.tokens) <= kind["many"]
            crossed = [
                token
                for token, c in zip(self.tokens, self.owners, strict=True)
                if few or (c >= 0 and self.table["columns"][c]["telling"])
            ]
            for i, token in enumerate(crossed):
                for other in crossed[i + 1 :]:
                    yield combined(token, other)

    def trees(self, kind: dict[str, Any]) -> Iterator[int]:
        """The leaf of every tree; a node's own number says which column it splits, and where."""
        columns = len(self.active)
        for tree in range(kind["trees"] if columns > 2 else 0):
            node = combined(tree, 5000)
            for _ in range(kind["depth"]):
                node = combined(node, 1 if self.ranks[node % columns] > (node >> 16 & 255) else 2)
            yield node


def sparse(pairs: Any) -> dict[int, Any]:
    """Keys of JSON are text."""
    return {int(j): value for j, value in pairs.items()}


def dot(weights: dict[int, float], x: dict[int, float]) -> float:
    return math.fsum(weights[j] * value for j, value in x.items() if j in weights)


# The model.


class Model:
    """What a file of `rue export --to json` says.

    >>> document = {"input": {"kind": "numbers"}, "weights": {"0": 2.0}, "intercept": 0.5, "range": None}
    >>> Model({**document, "task": "regress", "link": "identity", "stages": None}).predict([1.5])
    {'score': 3.5, 'value': 3.5}
    """

    def __init__(self, document: dict[str, Any]) -> None:
        given = document["input"]
        self.document, self.weights = document, sparse(document["weights"])
        self.input: Any = (
            Table(given)
            if given["kind"] == "table"
            else Line(given["bits"], given.get("interact", []))
            if given["kind"] == "vw"
            else Named(given["places"])
            if given["kind"] == "names"
            else Numbers()
        )
        self.stages = Stages(document["stages"]) if document["stages"] else None

    def score(self, row: Any) -> float:
        """What `rue predict` writes."""
        x = self.input.features(row)
        p = self.document["intercept"] + dot(self.weights, x)
        return self.clipped(self.stages.score(x, p, self.clipped) if self.stages else p)

    def clipped(self, p: float) -> float:
        """Within the range of the labels that were learnt."""
        ends = self.document["range"]
        return p if ends is None else min(max(p, ends[0]), ends[1])

    def predict(self, row: Any) -> dict[str, Any]:
        """The score, and the value, or the label and, if it is known, the probability of the positive class."""
        score, link = self.score(row), self.document["link"]
        if self.document["task"] == "regress":
            return {"score": score, "value": math.exp(min(score, 700.0)) if link == "log-mean" else score}
        found = {"score": score, "label": self.document["positive" if score > 0.0 else "negative"]}
        if link == "log-odds":
            found["probability"] = 1.0 / (1.0 + math.exp(-min(max(score, -700.0), 700.0)))
        return found


def serve(model: Model) -> None:
    """Answer rows of JSON, one a line."""
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(model.predict(json.loads(line))))  # noqa: T201
