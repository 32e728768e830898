"""Record extraction: checks extracted data against its schema and its source, and returns it with the problems found.

The verdict is data: an invalid record is returned as such, so nothing of the extraction is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.executors.failures import work_failed
from pointsman.models.repair import read_json
from pointsman.models.transcript import as_text
from pointsman.ports import ExecutionPort
from pointsman.tools.schemas import Checker, SchemaWrong
from pointsman.values import Json, JsonObject

QUOTING: Final = ("quote", "quotes")
"""Keys whose texts must occur in the source, at any depth."""


class RecordExecutor:
    """Input: {"extraction", "source"?, "index"?}. Config: `schema`, `sourceSystem`.

    Result: {"data", "status", "problems"?, "source"?, "sourceSystem"?, "index"?, "quotes"?: [{"text", "found"}]}, where
    `status` is `valid`, `invalid` (does not fit the schema) or `unsupported` (a quote is not in the source).
    """

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        schema = spec.config.get("schema")
        try:
            checker = Checker(schema if isinstance(schema, dict) else {})
        except SchemaWrong as why:
            return work_failed(command, Failure(code="output-schema-wrong", message=str(why), hint=why.hint))
        given = command.input
        data = _data(given.get("extraction"))
        record: JsonObject = {"data": data}
        record |= {key: given[key] for key in ("source", "index") if given.get(key) is not None}
        if (system := spec.config.get("sourceSystem")) is not None:
            record["sourceSystem"] = system
        quotes = _quotes(data, given.get("source"))
        if quotes:
            record["quotes"] = quotes
        problems = checker.problems(data)
        if problems:
            record["problems"] = problems
        unfound = any(isinstance(quote, dict) and quote["found"] is False for quote in quotes)
        record["status"] = "invalid" if problems else "unsupported" if unfound else "valid"
        return WorkDone(step=command.step, attempt=command.attempt, result=record)


def _data(extraction: Json) -> Json:
    """Return the extraction; a text that contains JSON is parsed."""
    read = read_json(extraction) if isinstance(extraction, str) else None
    return extraction if read is None else read.value


def _quotes(data: Json, source: Json) -> list[Json]:
    """Return each quote in the data, and whether it occurs in the source; None if there is no source."""
    text = None if source is None else _plain(as_text(source))
    return [{"text": quote, "found": None if text is None else _plain(quote) in text} for quote in _quoted(data)]


def _quoted(data: Json) -> Iterator[str]:
    waiting: list[tuple[bool, Json]] = [(False, data)]
    while waiting:
        quoting, value = waiting.pop()
        match value:
            case str():
                if quoting and value.strip():
                    yield value
            case list():
                waiting.extend((quoting, one) for one in reversed(value))
            case dict():
                waiting.extend((quoting or key in QUOTING, one) for key, one in reversed([*value.items()]))
            case _:
                pass


def _plain(text: str) -> str:
    """Normalise what typesetting changes: spaces, case, the shapes of quotes and dashes."""
    return " ".join(text.translate(_SHAPES).casefold().split())


_SHAPES: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "})
