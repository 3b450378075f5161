"""A linear model as an ONNX graph, in doubles.

A model of a table has an input for each column: numbers (NaN is missing), words ("" is missing), truth values as 0 and
1, and of dates, times and durations the seconds since 1970-01-01 UTC, since midnight, or in all. Any other has one
input `X`, a row for each example. Words are hashed by onnxruntime's own operator MurmurHash3; a model of numbers and
dates alone needs the standard operators only.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rue.errors import SettingsError
from rue.exports.standalone import WEEKDAYS, murmur3

__all__ = ["graph"]

OPSET, ML_OPSET, IR = 20, 3, 9
"""Versions that runtimes of 2024 read."""
HASHER = "com.microsoft"
MOST_FEATURES = 2**24


def graph(document: dict[str, Any]) -> bytes:
    """The bytes of the file for a document of `rue.exports.document`."""
    try:
        import onnx
    except ImportError:
        raise SettingsError("export to ONNX needs onnx: pip install 'rue[onnx]'.") from None
    given = document["input"]
    if document["stages"]:
        raise SettingsError(
            "export: stages over bins, pairs and trees have no ONNX form yet: export to python or json, or learn a "
            "linear model (--linear)."
        )
    if given["kind"] == "vw" or any(kind == "text" for _, kind in given.get("plan", ())):
        raise SettingsError("export: ONNX cannot split text into words as rue does: export to python or json.")
    for binned in given.get("bins", ()):
        raise SettingsError(
            f"export: the column {binned['column']!r} is put into bins, which ONNX does not write yet: export to "
            "python or json, or learn without --bins."
        )
    for names in given.get("crosses", ()):
        if any(dict(given["plan"])[name] != "category" for name in names):
            raise SettingsError(
                f"export: {' × '.join(names)} crosses numbers, which ONNX does not write as rue does: export to python "
                "or json."
            )
    build = _Graph()
    if given["kind"] == "table":
        linear = build.constant(float(document["intercept"]))
        for part in _Columns(build, document).parts():
            linear = build.node("Add", linear, part)
    else:
        linear = _of_matrix(build, document)
    _finish(build, document, linear)
    return build.model(onnx, document)


class _Graph:
    """Nodes, constants, inputs and outputs."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.domains = {"": OPSET}

    def node(self, operator: str, *inputs: str, domain: str = "", out: str | None = None, **attributes: Any) -> str:
        """Add a node; the name of what it gives."""
        from onnx import helper

        out = f"rue/{len(self.nodes)}" if out is None else out
        self.domains.setdefault(domain, 1 if domain == HASHER else ML_OPSET)
        self.nodes.append(helper.make_node(operator, list(inputs), [out], domain=domain, **attributes))
        return out

    def constant(self, value: Any) -> str:
        from onnx import helper, numpy_helper

        name, array = f"rue/constant/{len(self.constants)}", np.asarray(value)
        if array.dtype.kind == "U":
            texts = [text.encode() for text in array.reshape(-1).tolist()]
            self.constants.append(helper.make_tensor(name, 8, array.shape, texts))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def input(self, name: str, kind: int, *shape: Any) -> str:
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, kind, ["examples", *shape]))
        return name

    def output(self, name: str, kind: int) -> None:
        from onnx import helper

        self.outputs.append(helper.make_tensor_value_info(name, kind, ["examples"]))

    def model(self, onnx: Any, document: dict[str, Any]) -> bytes:
        from onnx import helper

        graph = helper.make_graph(self.nodes, "rue", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.domains.items()]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR, producer_name="rue", producer_version=document["rue"]
        )
        names = document["input"].get("names") or sorted(
            document["input"].get("places", {}), key=document["input"].get("places", {}).get
        )
        about = {"formula": document["formula"], "features": json.dumps(names)} if names else {}
        for key, text in about.items():
            model.metadata_props.add(key=key, value=text)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


class _Columns:
    """What each column of a table adds to the score."""

    def __init__(self, build: _Graph, document: dict[str, Any]) -> None:
        self.build, self.given = build, document["input"]
        self.weights = {int(j): float(weight) for j, weight in document["weights"].items()}
        self.starts, self.mask = dict(self.given["starts"]), 2 ** self.given["bits"] - 1
        self.slots = sorted(j - len(self.given["own"]) for j in self.weights if j >= len(self.given["own"]))
        self.table: str | None = None
        """The weights of words, after a 0 for those that have none."""

    def parts(self) -> list[str]:
        return [self.part(name, kind) for name, kind in self.given["plan"]] + [
            self.crossed(names) for names in self.given["crosses"]
        ]

    def crossed(self, names: list[str]) -> str:
        """What categories that are crossed add."""
        text, mark = names[0], self.build.constant(np.array("×"))
        for name in names[1:]:
            text = self.build.node("StringConcat", self.build.node("StringConcat", text, mark), name)
        return self.hashed("×".join(names), text)

    def word(self, name: str, text: str) -> float:
        """The weight of `name=text`."""
        slot = len(self.given["own"]) + (murmur3(f"{name}={text}".encode()) & self.mask)
        return self.weights.get(slot, 0.0)

    def own(self, name: str) -> float:
        return self.weights.get(self.given["own"].index(name), 0.0)

    def part(self, name: str, kind: str) -> str:
        from onnx import TensorProto

        build = self.build
        if kind == "category":
            return self.hashed(name, build.input(name, TensorProto.STRING))
        x = build.input(name, TensorProto.DOUBLE)
        gone = build.node("IsNaN", x)
        there = build.node("Where", gone, build.constant(0.0), x)
        if kind in ("number", "boolean"):
            value = build.node("Mul", there, build.constant(self.own(name)))
        else:
            value = self.moment(name, kind, there)
        return build.node("Where", gone, build.constant(self.word(name, "")), value)

    def hashed(self, name: str, x: str) -> str:
        """The weight of each word, by the hash of `name=word`."""
        from onnx import TensorProto

        build = self.build
        if self.table is None:
            own = len(self.given["own"])
            self.table = build.constant(np.array([0.0, *(self.weights[own + slot] for slot in self.slots)]))
        text = build.node("StringConcat", build.constant(np.array(f"{name}=")), x)
        hashes = build.node("MurmurHash3", text, domain=HASHER, positive=1, seed=0)
        slot = build.node(
            "Mod", build.node("Cast", hashes, to=TensorProto.INT64), build.constant(np.int64(self.mask + 1))
        )
        keys, places = self.slots or [-1], list(range(1, 1 + len(self.slots))) or [0]
        place = build.node(
            "LabelEncoder", slot, domain="ai.onnx.ml", keys_int64s=keys, values_int64s=places, default_int64=0
        )
        return build.node("Gather", self.table, place)

    def moment(self, name: str, kind: str, x: str) -> str:
        """What a date, a time of day or a duration adds, by its seconds."""
        build, calendar, new = self.build, kind in ("timestamp", "date"), self.given["version"] > 1
        days = build.node("Div", x, build.constant(86400.0))
        whole = build.node("Floor", days)
        start = float(self.starts.get(name, 0) if new else 0)
        since = build.node("Sub", days, build.constant(start))
        parts = [build.node("Mul", since, build.constant(self.own(name)))]
        second = build.node("Sub", x, build.node("Mul", whole, build.constant(86400.0)))
        if kind != "duration" and kind != ("date" if not new else ""):
            hour = build.node("Floor", build.node("Div", second, build.constant(3600.0)))
            of_hour = self.gathered([self.word(f"{name}.hour", str(h)) for h in range(24)], hour)
            if calendar and new:
                sharp = build.node("Equal", second, build.constant(0.0))
                of_hour = build.node("Where", sharp, build.constant(0.0), of_hour)
            parts.append(of_hour)
        if calendar:
            weekday = self.remainder(build.node("Add", whole, build.constant(3.0)), 7)
            parts.append(self.gathered([self.word(f"{name}.weekday", day) for day in WEEKDAYS], weekday))
        if calendar and new:
            weight = build.constant(self.own(f"{name}.day_of_year"))
            parts.append(build.node("Mul", self.day_of_year(whole), weight))
        total = parts[0]
        for part in parts[1:]:
            total = build.node("Add", total, part)
        return total

    def gathered(self, weights: list[float], places: str) -> str:
        from onnx import TensorProto

        index = self.build.node("Cast", places, to=TensorProto.INT64)
        return self.build.node("Gather", self.build.constant(np.array(weights)), index)

    def quotient(self, a: str, b: float) -> str:
        return self.build.node("Floor", self.build.node("Div", a, self.build.constant(float(b))))

    def remainder(self, a: str, b: float) -> str:
        return self.less(a, self.times(self.quotient(a, b), b))

    def times(self, a: str, b: float) -> str:
        return self.build.node("Mul", a, self.build.constant(float(b)))

    def plus(self, a: str, b: str) -> str:
        return self.build.node("Add", a, b)

    def less(self, a: str, b: str) -> str:
        return self.build.node("Sub", a, b)

    def day_of_year(self, days: str) -> str:
        """From 1 to 366, of days since 1970: years that begin in March, in eras of 400 years."""
        build = self.build
        z = self.plus(days, build.constant(719468.0))
        era = self.quotient(z, 146097)
        doe = self.less(z, self.times(era, 146097))
        leaps = self.less(self.quotient(doe, 36524), self.plus(self.quotient(doe, 1460), self.quotient(doe, 146096)))
        yoe = self.quotient(self.plus(doe, leaps), 365)
        before = self.less(self.plus(self.times(yoe, 365), self.quotient(yoe, 4)), self.quotient(yoe, 100))
        of_march = self.less(doe, before)
        year = self.plus(yoe, self.times(era, 400))

        def divides(b: float) -> str:
            return build.node("Equal", self.remainder(year, b), build.constant(0.0))

        leap = build.node("Or", build.node("And", divides(4), build.node("Not", divides(100))), divides(400))
        spring = build.node("Where", leap, build.constant(61.0), build.constant(60.0))
        late = build.node("GreaterOrEqual", of_march, build.constant(306.0))
        return build.node("Where", late, self.plus(of_march, build.constant(-305.0)), self.plus(of_march, spring))


def _of_matrix(build: _Graph, document: dict[str, Any]) -> str:
    """⟨w, x⟩ + b of the rows of one matrix."""
    from onnx import TensorProto

    given = document["input"]
    weights = {int(j): weight for j, weight in document["weights"].items()}
    width = given["features"] if given["kind"] == "numbers" else len(given["places"])
    if width > MOST_FEATURES:
        raise SettingsError(
            f"export: the model has {width:,} features, and the rows of an ONNX graph's input are dense: export to "
            "python or json."
        )
    w = np.zeros((max(width, 1), 1))
    for j, weight in weights.items():
        w[j] = weight
    X = build.input("X", TensorProto.DOUBLE, max(width, 1))
    scores = build.node("Squeeze", build.node("MatMul", X, build.constant(w)), build.constant(np.array([1])))
    return build.node("Add", scores, build.constant(float(document["intercept"])))


def _finish(build: _Graph, document: dict[str, Any], linear: str) -> None:
    """The score, and what it means."""
    from onnx import TensorProto

    ends = document["range"]
    clipped = linear if ends is None else build.node("Clip", linear, *(build.constant(float(end)) for end in ends))
    build.node("Identity", clipped, out="score")
    build.output("score", TensorProto.DOUBLE)
    if document["task"] == "regress":
        if document["link"] == "log-mean":
            build.node("Exp", build.node("Min", "score", build.constant(700.0)), out="value")
            build.output("value", TensorProto.DOUBLE)
        return
    pair = [document["negative"], document["positive"]]
    if None not in pair:
        array = np.array(pair)
        kind = {"b": TensorProto.BOOL, "i": TensorProto.INT64, "f": TensorProto.DOUBLE, "U": TensorProto.STRING}
        above = build.node("Greater", "score", build.constant(0.0))
        if array.dtype.kind == "b":  # for which onnxruntime has no Where
            build.node("Identity" if pair[1] else "Not", above, out="label")
        else:
            chosen = [build.constant(np.array(value, dtype=array.dtype)) for value in array.tolist()]
            build.node("Where", above, chosen[1], chosen[0], out="label")
        build.output("label", kind[array.dtype.kind])
    if document["link"] == "log-odds":
        bounded = build.node("Clip", "score", build.constant(-700.0), build.constant(700.0))
        odds = build.node("Exp", build.node("Neg", bounded))
        build.node("Div", build.constant(1.0), build.node("Add", build.constant(1.0), odds), out="probability")
        build.output("probability", TensorProto.DOUBLE)
