"""JSONPath (RFC 9535) within limits: parsed by `jsonpath-rfc9535`, evaluated here, where every visit is counted."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pointsman.expressions.failures import BadJsonPath, DataTooDeep, ExpressionTooLong, Spot, TooManyVisits
from pointsman.expressions.limits import COMPILED_MAX, JSONPATH_VISITS_MAX, SOURCE_CHARS_MAX
from pointsman.values import Json

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

__all__ = ["JsonPath", "compile_jsonpath"]


class JsonPath:
    """A compiled query. Immutable and shareable."""

    def __init__(self, source: str, query: JSONPathQuery) -> None:
        self.source = source
        self._query = query

    def find(self, value: Json) -> list[Json]:
        """Return the values that the query selects, in the order of the RFC. Raises `TooManyVisits`."""
        from pointsman.expressions.jsonpath_evaluator import BudgetSpent, QueryEvaluation

        spot = Spot(self.source, 0, len(self.source))
        try:
            return QueryEvaluation(value, JSONPATH_VISITS_MAX).select(self._query, value)
        except BudgetSpent:
            raise TooManyVisits(
                f"this touches more than {JSONPATH_VISITS_MAX} nodes",
                spot=spot,
                hint="Start deeper in the data, or avoid `..`.",
            ) from None
        except RecursionError:
            raise DataTooDeep("the data is nested too deeply for this query", spot=spot) from None

    def __repr__(self) -> str:
        return f"JsonPath({self.source!r})"


@lru_cache(maxsize=COMPILED_MAX)
def compile_jsonpath(source: str) -> JsonPath:
    """Compile a query. Raises `BadJsonPath` with the position."""
    if len(source) > SOURCE_CHARS_MAX:
        spot = Spot(source, SOURCE_CHARS_MAX, len(source))
        raise ExpressionTooLong(f"a query has at most {SOURCE_CHARS_MAX} characters", spot=spot)
    # Imported here because the library takes milliseconds to import, and most workflows have no query.
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError

    from pointsman.expressions.jsonpath_evaluator import check_query

    try:
        query = JSONPathEnvironment().compile(source)
    except JSONPathError as why:
        at = why.token.index if why.token else 0
        message = str(why.args[0]) if why.args else "this is no JSONPath query"
        raise BadJsonPath(message, spot=Spot(source, at, at + 1), hint="Queries look like `$.items[*].name`.") from None
    except RecursionError:
        raise BadJsonPath("the query is nested too deeply", spot=Spot(source, 0, len(source))) from None
    if reason := check_query(query):
        raise BadJsonPath(reason, spot=Spot(source, 0, len(source)), hint="Split it over two transforms.")
    return JsonPath(source, query)
