"""Points that are done, kept in a folder: one Parquet file a point, so that work that was cut off goes on."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable
from pathlib import Path as FilePath
from typing import Any

from headway._native import HeadwayError, __version__

KEY = b"headway.point"


class Store:
    """A folder of points. Each file's name has the digest of all that its point depends on, so a folder may hold many sweeps and searches."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise HeadwayError("store: needs the package pyarrow: pip install 'headway-sched[parquet]'") from error
        if not isinstance(folder, (str, os.PathLike)):
            raise HeadwayError(f"store: {folder!r} is no folder")
        self.folder = FilePath(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HeadwayError(f"store: cannot make the folder '{folder}': {error.strerror}") from error

    def path(self, inputs: object) -> FilePath:
        """The file of a point with these inputs."""
        whole = json.dumps([__version__, inputs], sort_keys=True, default=str)
        return self.folder / f"{hashlib.sha256(whole.encode()).hexdigest()[:32]}.parquet"

    def get(self, inputs: object) -> str | None:
        """The point's answer, if it is here."""
        import pyarrow.parquet as pq

        path = self.path(inputs)
        if not path.exists():
            return None
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, ValueError) as error:
            raise HeadwayError(f"store: cannot read '{path}': {error}; remove it") from error
        if KEY not in metadata:
            raise HeadwayError(f"store: '{path}' is no point of this package; remove it, or choose another folder")
        answer: bytes = metadata[KEY]
        return answer.decode()

    def put(self, inputs: object, answer: str, rows: Iterable[dict[str, Any]]) -> None:
        """Keeps the point: whole, or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(list(rows)).replace_schema_metadata({KEY: answer.encode()})
        path = self.path(inputs)
        # Other threads, processes and nodes may keep the same point at this time.
        partial = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.{secrets.token_hex(4)}.partial")
        try:
            pq.write_table(table, partial)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise HeadwayError(f"store: cannot write '{path}': {error.strerror or error}") from error
