"""Workloads: by name, from a file, a dict, arrays or a stranger's table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import HeadwayError, NativeWorkload

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from headway.settings import Path

#: Nanoseconds of a unit.
UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


class Workload:
    """The requests that arrive: classes with shares and service times, and how arrivals follow one another. Made by :func:`workload`."""

    def __init__(self, native: NativeWorkload, source: tuple[Any, ...]) -> None:
        self.native = native
        self._source = source

    @property
    def name(self) -> str:
        """Its name in reports."""
        return self.native.name

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return self.native.classes

    @property
    def mean_service_us(self) -> float:
        """The mean service time over all classes, µs."""
        return self.native.mean_service_us

    @property
    def requests(self) -> int | None:
        """The number of recorded requests; none where it is not a trace."""
        return self.native.requests

    def rate_for_load(self, load: float, workers: int) -> float:
        """The rate, requests per second, that loads so many workers to the fraction ``load``."""
        return self.native.rate_for_load(load, workers)

    def to_toml(self) -> str:
        """The text of a workload file."""
        return self.native.to_toml()

    def __repr__(self) -> str:
        what = "workload" if self.requests is None else f"trace of {self.requests} requests"
        return f"<headway {what} {self.name!r}: {', '.join(self.classes)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, self._source


def _rebuilt(kind: str, *of: Any) -> Workload:
    make: dict[str, Callable[..., NativeWorkload]] = {
        "resolve": NativeWorkload.resolve,
        "toml": NativeWorkload.from_toml,
        "arrays": NativeWorkload.from_arrays,
    }
    return Workload(make[kind](*of), (kind, *of))


def workload(
    source: str | os.PathLike[str] | Mapping[str, Any] | Workload | None = None,
    *,
    arrivals: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    service: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    unit: str = "us",
    name: str | None = None,
    trace_format: str | None = None,
    service_model: str | None = None,
    skip_zero: bool = False,
) -> Workload:
    """The workload that is named, read or given.

    :param source: one of
        a name of the literature (``"high-bimodal"``), a workload file (TOML), a trace (CSV) or a log of a cache;
        the text of a workload file, of several lines;
        a dict in the shape of a workload file (``{"class": [{"name": "GET", "share": 1.0, "service": {...}}]}``);
        with ``columns``, a CSV or Parquet file, or a pandas frame.
    :param arrivals: an array of the requests' arrival times, shape ``(n,)``, ascending, in ``unit``.
    :param classes: an array of the requests' classes, shape ``(n,)``: names, or indices into ``class_names``.
        One class of all by default.
    :param service: an array of the requests' service times, shape ``(n,)``, above 0, in ``unit``.
    :param class_names: the names that indices mean.
    :param columns: which column of the table is the ``time``, the ``class`` and the ``service``.
    :param unit: ``"ns"``, ``"us"``, ``"ms"`` or ``"s"``. Arrays of ``uint64`` in ns are copied as they are, others are converted by numpy.
    :param name: the workload's name in reports.
    :param trace_format: ``"csv"``, ``"twitter-cache"`` or ``"redis-monitor"``; guessed by default.
    :param service_model: service times of the operations in a log that has none: ``"get=1.2us,*=5us"``.
    :param skip_zero: leave out the rows of a trace whose requests took no time.
    :raises HeadwayError: where something of it is wrong, with its place.

    The named workloads are those of the papers, which ``headway`` cites in docs/workloads.md.
    """
    given = {
        "arrivals": arrivals, "classes": classes, "service": service, "class_names": class_names, "columns": columns, "name": name,
        "trace_format": trace_format, "service_model": service_model, "skip_zero": skip_zero or None, "unit": None if unit == "us" else unit,
    }  # fmt: skip
    _refuse_others(source, {option for option, value in given.items() if value is not None})
    if isinstance(source, Workload):
        return source
    if columns is not None:
        table = _table(source, columns)
        arrivals, classes, service = (table.get(part) for part in ("time", "class", "service"))
        name = name or (FilePath(source).stem if isinstance(source, (str, os.PathLike)) else "frame")
        source = None
    if arrivals is not None or service is not None:
        if source is not None:
            raise HeadwayError("workload: give a source or arrays, not both")
        return _of_arrays(arrivals, classes, service, class_names, unit, name or "arrays")
    if isinstance(source, Mapping):
        return _rebuilt("toml", _toml(source), name or "dict.toml")
    if isinstance(source, (str, os.PathLike)):
        named = os.fsdecode(source)
        if "\n" in named:
            return _rebuilt("toml", named, name or "text.toml")
        return _rebuilt("resolve", named, trace_format, service_model, skip_zero)
    raise HeadwayError(f"workload: {source!r} is no name, file, dict or table")


def _refuse_others(source: object, given: set[str]) -> None:
    """Refuses the first option that this kind of source does not take."""
    if "columns" in given:
        what, takes = "a table", {"columns", "class_names", "unit", "name"}
    elif {"arrivals", "service"} & given and source is None:
        what, takes = "a workload of arrays", {"arrivals", "classes", "service", "class_names", "unit", "name"}
    elif isinstance(source, Workload):
        what, takes = "a workload that is made", set()
    elif isinstance(source, Mapping) or (isinstance(source, (str, os.PathLike)) and "\n" in os.fsdecode(source)):
        what, takes = "a workload file's content", {"name"}
    elif isinstance(source, (str, os.PathLike)):
        what, takes = "a name or a file", {"trace_format", "service_model", "skip_zero"}
    else:
        return
    if {"arrivals", "service"} & (given - takes):
        raise HeadwayError("workload: give a source or arrays, not both")
    for option in sorted(given - takes):
        raise HeadwayError(f"{option}: {what} does not take it; it takes {', '.join(sorted(takes)) or 'no options'}")


def _of_arrays(
    arrivals: ArrayLike | None,
    classes: ArrayLike | None,
    service: ArrayLike | None,
    class_names: Sequence[str] | None,
    unit: str,
    name: str,
) -> Workload:
    if arrivals is None or service is None:
        raise HeadwayError("workload: arrays of arrivals and of service times are needed")
    at_ns = _ns("arrivals", arrivals, unit)
    names, indices = _classes(classes, class_names, len(at_ns))
    service_ns = _ns("service", service, unit, least_ns=1)
    return _rebuilt("arrays", name, names, at_ns, indices, service_ns)


def _ns(place: str, given: ArrayLike, unit: str, least_ns: int = 0) -> NDArray[np.uint64]:
    """Whole nanoseconds; what is above 0 and rounds to 0 becomes ``least_ns``, as in a trace's file."""
    if unit not in UNITS_NS:
        raise HeadwayError(f"unit: '{unit}' is none of {', '.join(UNITS_NS)}")
    array = _array(place, given)
    if array.ndim != 1 or array.dtype.kind not in "uif":
        raise HeadwayError(f"{place}: must be numbers of shape (n,), not {array.dtype} of shape {array.shape}")
    if array.dtype == np.uint64 and unit == "ns":
        # A copy of our own: the workload keeps it, and the caller may change his. It is contiguous and aligned, whatever his is.
        return np.array(array, dtype=np.uint64, order="C")
    if array.dtype.kind == "f":
        # Before any arithmetic: half a float's range ends at 65 504.
        array = array.astype(np.float64)
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        row = int(np.argmin(np.isfinite(array) & (array >= 0)))
        raise HeadwayError(f"{place}: row {row + 1} is {array[row]}; times are numbers from 0 on")
    if np.any(array.astype(np.float64) * UNITS_NS[unit] >= 2.0**63):
        raise HeadwayError(f"{place}: times must be below 2^63 ns, 292 years")
    if array.dtype.kind == "f":
        ns = np.rint(array * float(UNITS_NS[unit]))
        ns[(array > 0) & (ns < least_ns)] = least_ns
        return ns.astype(np.uint64)
    return array.astype(np.uint64) * np.uint64(UNITS_NS[unit])


def _array(place: str, given: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        raise HeadwayError(f"{place}: is no array: {error}") from error


def _classes(given: ArrayLike | None, class_names: Sequence[str] | None, count: int) -> tuple[list[str], NDArray[np.uint16]]:
    if given is None:
        if class_names is not None:
            raise HeadwayError("class_names: give classes too, each request's index")
        return ["request"], np.zeros(count, dtype=np.uint16)
    array = _array("classes", given)
    if array.ndim != 1:
        raise HeadwayError(f"classes: must have shape (n,), not {array.shape}")
    if array.dtype.kind in "ui" and class_names is not None:
        if np.any(array < 0) or np.any(array > 0xFFFF):
            raise HeadwayError("classes: indices are 0 to 65535")
        return [str(each) for each in class_names], np.array(array, dtype=np.uint16, order="C")
    if class_names is not None:
        raise HeadwayError("class_names: are the names of classes that are indices; these are names already")
    import pandas as pd

    codes, names = pd.factorize(array)
    if np.any(codes < 0):
        raise HeadwayError(f"classes: row {int(np.argmin(codes)) + 1} has no class")
    if len(names) > 0xFFFF:
        raise HeadwayError(f"classes: {len(names)} are too many; there may be 65535")
    return [str(each) for each in names], codes.astype(np.uint16)


def _table(source: object, columns: Mapping[str, str]) -> Mapping[str, Any]:
    """The columns of a CSV or Parquet file, or of a frame."""
    import pandas as pd

    unknown = set(columns) - {"time", "class", "service"}
    if unknown or "time" not in columns or "service" not in columns:
        raise HeadwayError("columns: name the columns of time and service, and of the class where there is one")
    if isinstance(source, pd.DataFrame):
        frame = source
    elif isinstance(source, (str, os.PathLike)):
        read = pd.read_parquet if os.fsdecode(source).endswith((".parquet", ".pq")) else pd.read_csv
        try:
            frame = read(source)
        except (OSError, ValueError) as error:
            raise HeadwayError(f"workload: cannot read '{os.fsdecode(source)}': {error}") from error
    else:
        raise HeadwayError(f"workload: {source!r} is no file and no frame")
    missing = [column for column in columns.values() if column not in frame]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise HeadwayError(f"columns: there is no column '{missing[0]}'; there are: {there}")
    return {part: frame[column].to_numpy() for part, column in columns.items()}


def _toml(value: Mapping[str, Any]) -> str:
    """A dict as the text of a workload file."""
    return "".join(f"{key} = {_toml_value(part)}\n" for key, part in value.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c for c in escaped) + '"'
    if isinstance(value, (int, float, np.integer, np.floating)):
        return repr(float(value)) if isinstance(value, (float, np.floating)) else str(int(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_value(str(key))} = {_toml_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, (Sequence, np.ndarray)):
        return "[" + ", ".join(_toml_value(part) for part in value) + "]"
    raise HeadwayError(f"workload: {value!r} has no place in a workload")


def workload_source(given: object) -> Workload:
    """A workload, or what :func:`workload` makes one of."""
    if given is None or isinstance(given, (str, os.PathLike, Mapping, Workload)):
        return workload(given)
    raise HeadwayError(f"workload: {given!r} is no name, file, dict or workload")


if TYPE_CHECKING:
    #: What a function takes as a workload.
    WorkloadSource = str | Path | Mapping[str, Any] | Workload
