"""Datasets: cases with an input and an expected output, which belong to a workflow and are seen by those who see it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from pointsman.context import AppContext
from pointsman.errors import AuthorError, CallerError
from pointsman.etags import content_etag, delete_after, etag_of, matched_entry, put_after
from pointsman.evaluations.scorers import Scorer
from pointsman.store.errors import EntryMoved
from pointsman.values import Json, JsonObject

DATASET: Final = "dataset"
"""Kind of entry; its key is the id."""
CASES: Final = "dataset-cases"
"""Kind of entry with the cases, so that lists do not read them."""
CASES_MAX: Final = 2_000
BYTES_MAX: Final = 5_000_000
EXPECTED: Final = "expected"
"""The column or key with the expected output; `expected.x` is one field of it."""


class UnknownDataset(CallerError):
    """There is no dataset with this id for the caller."""

    code: ClassVar[str] = "unknown-dataset"


class DatasetInvalid(AuthorError):
    """The cases of a dataset cannot be read, or are too many."""

    code: ClassVar[str] = "dataset-invalid"


class DatasetCase(Struct, frozen=True, omit_defaults=True):
    """One input of a workflow, and the output that is expected."""

    input: JsonObject
    expected: Json = None
    execution: str = ""
    """The execution that it was made from; empty: none."""


class Dataset(Struct, frozen=True, kw_only=True):
    """A dataset without its cases."""

    id: str
    name: str
    workflow: str
    """Id of the workflow that its cases are for."""
    scorers: tuple[Scorer, ...] = ()
    """How outputs are scored, unless a run states otherwise."""
    count: int = 0
    digest: str = ""
    """Hash of the cases."""
    by: str = ""
    at: float = 0.0

    @property
    def etag(self) -> str:
        return etag_of(content_etag(msgspec.to_builtins(self)))


async def find_dataset(app: AppContext, name: str) -> Dataset | None:
    """Return a dataset by its id; None: there is none."""
    entry = await app.store.entries.find(DATASET, name)
    return None if entry is None else msgspec.convert(entry.value, Dataset)


async def list_datasets(app: AppContext) -> list[Dataset]:
    """Return all datasets by id."""
    return [msgspec.convert(entry.value, Dataset) for entry in await app.store.entries.list(DATASET)]


async def cases_of(app: AppContext, name: str) -> list[DatasetCase]:
    """Return the cases of a dataset."""
    entry = await app.store.entries.find(CASES, name)
    return [] if entry is None else msgspec.convert(entry.value, list[DatasetCase])


async def save_dataset(
    app: AppContext, dataset: Dataset, cases: Sequence[DatasetCase], *, match: str | None = None
) -> Dataset:
    """Add or replace a dataset. `match`: see `etags.match_etag`. Raises `DatasetInvalid` for too many or too large
    cases, `RevisionMoved`."""
    if len(cases) > CASES_MAX:
        raise DatasetInvalid(f"a dataset has at most {CASES_MAX} cases, not {len(cases)}", hint="Split it.")
    stored: Json = msgspec.to_builtins(cases)
    if len(msgspec.json.encode(stored)) > BYTES_MAX:
        raise DatasetInvalid(f"the cases are larger than {BYTES_MAX // 1_000_000} MB", hint="Split the dataset.")
    made = msgspec.structs.replace(dataset, count=len(cases), digest=content_etag(stored), at=app.clock.now())
    entries, what = app.store.entries, f"the dataset {dataset.id!r}"
    after = await matched_entry(entries, DATASET, dataset.id, match, what)
    # First: a refused writer must not replace the cases.
    await put_after(entries, DATASET, dataset.id, msgspec.to_builtins(made), after=after, what=what)
    await entries.put(CASES, dataset.id, stored)
    return made


async def add_case(app: AppContext, dataset: Dataset, case: DatasetCase) -> Dataset:
    """Append a case; a concurrent addition is kept."""
    while True:
        entry = await app.store.entries.find(CASES, dataset.id)
        before: list[Json] = [] if entry is None or not isinstance(entry.value, list) else entry.value
        if len(before) >= CASES_MAX:
            raise DatasetInvalid(f"a dataset has at most {CASES_MAX} cases", hint="Delete some, or use another one.")
        cases: list[Json] = [*before, msgspec.to_builtins(case)]
        try:
            await app.store.entries.put(CASES, dataset.id, cases, after=0 if entry is None else entry.version)
        except EntryMoved:
            continue
        made = msgspec.structs.replace(dataset, count=len(cases), digest=content_etag(cases), at=app.clock.now())
        await app.store.entries.put(DATASET, dataset.id, msgspec.to_builtins(made))
        return made


async def delete_dataset(app: AppContext, name: str, *, match: str | None = None) -> None:
    """Delete a dataset with its cases. Runs keep the cases that they were started with. `match`: see
    `etags.match_etag`. Raises `RevisionMoved`."""
    what = f"the dataset {name!r}"
    after = await matched_entry(app.store.entries, DATASET, name, match, what)
    await delete_after(app.store.entries, DATASET, name, after=after, what=what)
    await app.store.entries.delete(CASES, name)


def read_cases(text: str, *, name: str = "") -> list[DatasetCase]:
    """Read cases from CSV (a file name that ends in .csv), or from JSON: one object per line, or a list.

    An object with `input` is a case as it is; in any other, `expected` and `expected.x` are the expected output, and
    the other members are the input. Raises `DatasetInvalid` with the number of the line.
    """
    rows = _csv_rows(text) if name.endswith(".csv") else _json_rows(text)
    return [_case(row, number) for number, row in rows]


def _csv_rows(text: str) -> Iterable[tuple[int, JsonObject]]:
    reader = csv.DictReader(io.StringIO(text))
    for row in reader:
        if None in row or None in row.values():
            raise DatasetInvalid(f"line {reader.line_num} has another number of columns than the first line")
        yield reader.line_num, {key.strip(): _cell(value) for key, value in row.items()}


def _cell(text: str) -> Json:
    """Return the value of a cell: JSON for numbers, booleans, lists and objects, otherwise the text."""
    try:
        value: Json = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text if isinstance(value, str) else value


def _json_rows(text: str) -> Iterable[tuple[int, JsonObject]]:
    if text.lstrip().startswith("["):
        try:
            yield from enumerate(msgspec.json.decode(text, type=list[JsonObject]), start=1)
        except msgspec.DecodeError as why:
            raise DatasetInvalid(f"the text is not a list of objects: {why}") from None
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield number, msgspec.json.decode(line, type=JsonObject)
        except msgspec.DecodeError as why:
            hint = "Each line is one JSON object; a file that ends in .csv is read as CSV."
            raise DatasetInvalid(f"line {number} is not a JSON object: {why}", hint=hint) from None


def _case(row: JsonObject, number: int) -> DatasetCase:
    given = row.get("input")
    if isinstance(given, dict):
        if unknown := row.keys() - {"input", EXPECTED, "execution"}:
            raise DatasetInvalid(f"case {number} has the unknown key {sorted(unknown)[0]!r}")
        return DatasetCase(given, row.get(EXPECTED))
    fields = {key.removeprefix(f"{EXPECTED}."): value for key, value in row.items() if key.startswith(f"{EXPECTED}.")}
    values = {key: value for key, value in row.items() if key != EXPECTED and not key.startswith(f"{EXPECTED}.")}
    if not values:
        raise DatasetInvalid(f"case {number} has no input")
    return DatasetCase(values, fields or row.get(EXPECTED))
