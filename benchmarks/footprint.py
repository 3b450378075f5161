"""One stream learnt from text in a process of its own: memory and time, start-up counted, beside the peers."""

from __future__ import annotations

import lzma
import sys
import tempfile
from pathlib import Path

from benchmarks.data import SHARED
from benchmarks.streams import environment, in_turns, learn

SKLEARN = """
import sys
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")  # SGDClassifier takes no others
SGDClassifier(loss="log_loss", shuffle=False).partial_fit(X, y, classes=[-1, 1])
"""
RIVER = """
import sys
from river.linear_model import LogisticRegression
model = LogisticRegression()
for line in open(sys.argv[1]):
    label, *pairs = line.split()
    x = {name: float(value) for name, value in (pair.split(":") for pair in pairs)}
    model.predict_proba_one(x)
    model.learn_one(x, float(label) > 0)
"""


def footprint_rows() -> list[tuple[str, float, str]]:
    """Memory at most and seconds by the clock, of each system."""
    packed = SHARED / "a9a.svm.xz"
    if not packed.exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        text = lzma.decompress(packed.read_bytes()).decode()
        svm, vw = Path(folder) / "a9a.svm", Path(folder) / "a9a.vw"
        svm.write_text(text)
        vw.write_text("".join(line.replace(" ", " |f ", 1) + "\n" for line in text.splitlines()))
        python = sys.executable
        commands = {
            "rue learn": [python, "-m", "rue", "learn", str(svm), "--quiet"],
            "rue learn, linear": [python, "-m", "rue", "learn", str(svm), "--linear", "--quiet"],
            "rue learn, OGD": learn(str(svm)),
            "vowpalwabbit": [python, "-m", "vowpalwabbit", "--loss_function", "logistic", "--quiet", "-d", str(vw)],
            "scikit-learn": [python, "-c", SKLEARN, str(svm)],
            "river": [python, "-c", RIVER, str(svm)],
        }
        spent = in_turns(commands, environment(folder))
    rows = [(f"memory of {name}, in MB", least.memory, "–") for name, least in spent.items()]
    return rows + [(f"seconds of {name}", least.wall, "–") for name, least in spent.items()]
