"""JSONPath (RFC 9535) within limits: queries are parsed by `jsonpath-rfc9535`; `jsonpath_evaluation` evaluates them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pointsman.expressions.failures import COMPILED_MAX, SOURCE_CHARS_MAX, BadJsonPath, ExpressionTooLong, Spot

if TYPE_CHECKING:
    from pointsman.expressions.jsonpath_evaluation import JsonPath


@lru_cache(maxsize=COMPILED_MAX)
def compile_jsonpath(source: str) -> JsonPath:
    """Compile a query. Raises `BadJsonPath` with the position."""
    if len(source) > SOURCE_CHARS_MAX:
        spot = Spot(source, SOURCE_CHARS_MAX, len(source))
        raise ExpressionTooLong(f"a query has at most {SOURCE_CHARS_MAX} characters", spot=spot)
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError  # Slow to import; most workflows have no query.

    from pointsman.expressions.jsonpath_evaluation import JsonPath, check_query  # Needs the same library.

    try:
        query = JSONPathEnvironment().compile(source)
    except JSONPathError as why:
        at = why.token.index if why.token else 0
        message = str(why.args[0]) if why.args else "this is not a JSONPath query"
        raise BadJsonPath(message, spot=Spot(source, at, at + 1), hint="Queries look like `$.items[*].name`.") from None
    except RecursionError:
        raise BadJsonPath("the query is nested too deeply", spot=Spot(source, 0, len(source))) from None
    if reason := check_query(query):
        raise BadJsonPath(reason, spot=Spot(source, 0, len(source)), hint="Split it over two transforms.")
    return JsonPath(source, query)
