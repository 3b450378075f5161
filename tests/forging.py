"""Model files changed on purpose, with a digest that fits, and whether they are refused."""

import contextlib
import time
import warnings

import numpy as np
import pytest
from safetensors.numpy import save as pack

import rue
from rue.models.container import _digest, read_container
from rue.models.file import load
from rue.models.settings import write_json
from rue.reports.inspection import describe


def use(model):
    """A model that was believed can be used: no crash, nothing outside its arrays."""
    learner = model.learner
    x = np.linspace(-1.0, 1.0, learner.d if learner._point is not None else 2)
    if learner.names.places:
        learner.predict(dict.fromkeys(learner.names.places, 1.0))
    else:
        learner.predict(x)
        learner.run(x[None, :], [1.0])
    if model.evidence is not None:
        block = rue.Block(x[None, :], [1.0])
        model.evidence.widen(learner.coordinates)
        model.evidence.watch(block, np.zeros(1), learner.intercept, learner.coordinates)
        with contextlib.suppress(rue.RueError):  # evidence may contradict the learner, which is said in a sentence
            model.evidence.certificate(rue.Ball(1))
    with contextlib.suppress(rue.RueError):
        assert repr(learner) in describe(model)


def refused_or_usable(path, also_use=True):
    """Whether `path` was refused; a DataError of one sentence or a model that works, within a second."""
    started = time.process_time()
    try:
        model = load(path)
    except rue.DataError as error:
        sentence = str(error)
        assert sentence.startswith(str(path))
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert len(sentence) < 600
        model = None
    assert time.process_time() - started < 10.0
    if model is not None and also_use:
        with warnings.catch_warnings():  # sums of random bits overflow
            warnings.simplefilter("ignore")
            use(model)
    return model is None


def reason(path):
    with pytest.raises(rue.DataError) as caught:
        load(path)
    return str(caught.value).removeprefix(str(path))


def forge(source, path, change):
    head, arrays = read_container(source)
    head, arrays = change(head, arrays) or (head, arrays)
    text = head if isinstance(head, str) else write_json(head)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    arrays["digest"] = _digest(text, arrays)
    path.write_bytes(pack(arrays, {"rue": text}))
    return path


def setting(*keys, value):
    def change(head, arrays):
        inside = head
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = value

    return change


def array(name, value):
    def change(head, arrays):
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value

    return change
