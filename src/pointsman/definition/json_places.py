"""Where everything stands in a text that is known to be plain JSON: one quick pass, for documents with problems."""

from __future__ import annotations

import json
import re
from typing import Final

from pointsman.definition.reading import Place

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


def places_of(text: str) -> Place:
    """The places of all members and items. `text` must be valid JSON without comments."""
    above = here = Place(0)
    index, key, key_offset = 0, None, -1  # as if the text stood in a list; an object has the index -1
    outer: list[tuple[Place, int]] = []
    for found in _TOKEN.finditer(text):
        token, offset = found[0], found.start()
        first = token[0]
        if first == ":":
            continue
        if first == ",":
            index += index >= 0
        elif first in "}]":
            here, index = outer.pop()
        elif index < 0 and key is None:
            key, key_offset = json.loads(token) if "\\" in token else token[1:-1], offset
        else:
            place = Place(offset, key_offset)
            here.parts[index if key is None else key] = place
            key, key_offset = None, -1
            if first in "{[":
                outer.append((here, index))
                here, index = place, -1 if first == "{" else 0
    return above.parts[0]
