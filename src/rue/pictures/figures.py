"""Figures and their panels: axes with labelled lines, saved so that the same picture makes the same file.

matplotlib is imported when a figure is made, and never its pyplot: there is no window and no global state.
"""

from __future__ import annotations

import importlib.util
import io
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError
from rue.outputs import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "SIZE",
    "Panel",
    "new_figure",
    "number",
    "require_picture",
    "save",
]

BLUE, RED, GREEN, PURPLE, ORANGE, GREY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00", "#767676"
"""Colours that colour-blind readers can tell apart (Okabe and Ito; the purple is Tol's, darker)."""
SIZE = 8.5
"""Of letters, in points."""
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""What to leave out of each kind of file so that the same picture makes the same file."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float) -> str:
    """Short, for people: 43.9, 5,284 or 2.3×10⁹."""
    if value == 0.0 or not math.isfinite(value):
        return {0.0: "0", math.inf: "∞", -math.inf: "−∞"}.get(value, "?")
    if not 1e-4 <= abs(value) < 1e7:
        digits, power = f"{value:.2e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        text = f"{digits}×10{str(int(power)).translate(RAISED)}".replace("1×", "" if digits in ("1", "-1") else "1×")
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"
    return text.replace("-", "−")


def _tick(value: float, _: Any = None) -> str:
    """The same with every digit that a tick has."""
    value = float(f"{value:.10g}")
    plain = value == 0.0 or 1e-4 <= abs(value) < 1e7
    return f"{value:,.10g}".replace("-", "−") if plain else number(value)


class Panel:
    """Axes on which every line is named at its right end, in its own colour."""

    def __init__(self, ax: Axes | None) -> None:
        self.ax: Axes = new_figure(1).subplots() if ax is None else ax
        self.ends: list[tuple[float, str, str]] = []
        self.drawn: list[Any] = []

    def line(self, x: Any, y: Any, label: str, colour: str, *, end_value: float | None = None, **more: Any) -> None:
        """Draw the finite part of a curve; `end_value` (by default its last value; NaN for none) is in its label."""
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        finite = np.isfinite(y)
        x, y = x[finite], y[finite]
        if not y.size:
            return
        settings = {"lw": 1.5, "color": colour, "label": label, "marker": "o" if y.size == 1 else "", "ms": 5}
        self.ax.plot(x, y, **{**settings, **more})
        end_value = float(y[-1]) if end_value is None else end_value
        self.ends.append((float(y[-1]), label if math.isnan(end_value) else f"{label}  {number(end_value)}", colour))
        self.drawn.append(y)

    def dots(self, x: Any, y: Any, label: str, colour: str) -> None:
        """Draw points."""
        finite = np.isfinite(y)
        x, y = np.asarray(x)[finite], np.asarray(y)[finite]
        if y.size:
            self.ax.plot(x, y, "o", ms=4.5, mfc="white", mec=colour, label=label, zorder=4, clip_on=False)
            self.ends.append((float(y[-1]), f"○ {label}", colour))
            self.drawn.append(y)

    def guide(self, T: int, end: float, logarithmic: bool) -> None:
        """A thin line that grows like √t or 1 + ln t, a little below `end` at T."""
        if T < 3 or not 0.0 < end < math.inf:
            return
        t = np.geomspace(1.0, T, 200)
        shape = 1.0 + np.log(t) if logarithmic else np.sqrt(t)
        values = 0.5 * end / shape[-1] * shape
        label = "∝ 1 + ln t" if logarithmic else "∝ √t"
        self.ax.plot(t, values, color=GREY, lw=1.0, ls=":", label=label, zorder=1)
        self.ends.append((float(values[-1]), label, GREY))

    def logarithmic(self) -> None:
        """A logarithmic vertical axis, below which what little is negative is cut off.

        Where more is negative it is linear near 0 and logarithmic on both sides.
        """
        from matplotlib.ticker import FuncFormatter, NullLocator, SymmetricalLogLocator

        values = np.concatenate(self.drawn) if self.drawn else np.ones(1)
        top, least, highest = float(np.abs(values).max()) or 1.0, float(values.min()), float(values.max())
        axis = self.ax.yaxis
        if least < -0.02 * top:
            within = 10.0 ** math.ceil(math.log10(top) - 3.0)
            self.ax.set_ylim(1.8 * least, 1.8 * highest if highest > within else 2.0 * within)
            self.ax.set_yscale("symlog", linthresh=within, linscale=0.5)
            axis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=within))
            self.ax.axhline(0.0, color=GREY, lw=0.8, zorder=1)
        elif highest > 0.0:
            positive = values[values > 1e-5 * top]
            low, high = float(positive.min()), top
            self.ax.set_ylim(low / 1.5, high * 1.8)
            self.ax.set_yscale("log", nonpositive="clip")
            axis.set_major_locator(_decades(low, high, 10))
        else:
            return
        axis.set_major_formatter(FuncFormatter(_tick))
        axis.set_minor_locator(NullLocator())

    def rounds(self, T: int) -> None:
        """A logarithmic horizontal axis of rounds."""
        from matplotlib.ticker import FixedLocator

        self.powers("rounds t", 1.0, float(T))
        if T < 10:
            self.ax.xaxis.set_major_locator(FixedLocator(range(1, T + 1)))

    def powers(self, label: str, low: float, high: float) -> None:
        """A logarithmic horizontal axis from `low` to `high`."""
        from matplotlib.ticker import FuncFormatter, NullLocator

        self.ax.set_xscale("log")
        self.ax.set_xlim(*((low, high) if high > low else (0.5 * low, 2.0 * low)))
        axis = self.ax.xaxis
        axis.set_major_locator(_decades(low, high, 8))
        axis.set_major_formatter(FuncFormatter(_tick))
        axis.set_minor_locator(NullLocator())
        self.ax.set_xlabel(label, fontsize=SIZE + 0.5)

    def whole(self) -> None:
        """Ticks at whole numbers only, on both axes."""
        from matplotlib.ticker import MaxNLocator

        for axis in (self.ax.xaxis, self.ax.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))

    def finish(self, ylabel: str, title: str) -> Axes:
        """Labels, a light grid, and the names of the lines."""
        from matplotlib.ticker import FuncFormatter

        ax = self.ax
        ax.set_ylabel(ylabel, fontsize=SIZE + 0.5)
        ax.set_title(title, fontsize=SIZE + 1.5, loc="left")
        ax.tick_params(labelsize=SIZE, length=3, color=GREY)
        ax.grid(True, color="#e4e4e4", lw=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() == "linear":
                axis.set_major_formatter(FuncFormatter(_tick))
        self._name_lines()
        return ax

    def _name_lines(self) -> None:
        """Each name next to the end of its line, moved only as far as others are in the way."""
        from scipy.optimize import isotonic_regression

        if not self.ends:
            return
        ax = self.ax
        right = ax.get_xlim()[1]
        to_axes = ax.transData + ax.transAxes.inverted()
        labels = [
            (float(np.clip(to_axes.transform((right, y))[1], 0.0, 1.0)), text, colour) for y, text, colour in self.ends
        ]
        labels.sort(key=lambda end: end[0])
        wanted = np.array([end[0] for end in labels])
        height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
        steps = 1.35 * SIZE / max(height, 1.0) * np.arange(wanted.size)
        placed = isotonic_regression(np.clip(wanted - steps, 0.0, max(0.0, 1.0 - steps[-1]))).x + steps
        for (y, text, colour), place in zip(labels, placed, strict=True):
            ax.annotate(
                text,
                xy=(1.0, y),
                xytext=(1.035, float(place)),
                xycoords="axes fraction",
                textcoords="axes fraction",
                va="center",
                fontsize=SIZE,
                color=colour,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "lw": 0.7,
                    "color": colour,
                    "shrinkA": 1.0,
                    "shrinkB": 1.0,
                    "relpos": (0.0, 0.5),
                },
            )


def _decades(low: float, high: float, most: int) -> Any:
    """Ticks at powers of ten, and at twice and five times these where there are few."""
    from matplotlib.ticker import LogLocator

    return LogLocator(base=10.0, subs=(1.0,) if high > 30.0 * low else (1.0, 2.0, 5.0), numticks=most)


def new_figure(panels: int) -> Figure:
    """A figure with room for so many pictures in a row, which shows itself in a notebook."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError("plots need matplotlib: pip install rue[plot]") from error

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            shown = io.BytesIO()
            self.savefig(shown, format="png", dpi=110)
            return shown.getvalue()

    rows = 1 + panels // 4
    return Picture(figsize=(6.4 if panels == 1 else 5.6 * math.ceil(panels / rows), 4.0 * rows), layout="constrained")


def require_picture(path: Any) -> Path:
    """Refuse a file of a kind that is not written."""
    target = Path(os.fspath(path))
    if target.suffix.lower() not in FORMATS:
        raise SettingsError(f"a picture is saved as .png, .svg or .pdf, not as {target.name!r}: choose one of these.")
    if importlib.util.find_spec("matplotlib") is None:
        raise SettingsError("pictures need matplotlib: install it, or rue with the extra: pip install 'rue[plot]'.")
    return target


def save(figure: Figure, path: Any) -> None:
    """Write a figure; the same picture gives the same file, with no date in it."""
    import matplotlib

    target = require_picture(path)
    kind = target.suffix.lower()
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "rue", "svg.fonttype": "path", "path.simplify": True}):
        figure.savefig(content, format=kind[1:], metadata=FORMATS[kind], dpi=200)
    write_file(target, content.getvalue())
