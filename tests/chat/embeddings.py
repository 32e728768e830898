"""A local embedding model, which knows some words and computes vectors from them."""

from __future__ import annotations

import json
import math
from typing import Final

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.values import Json

KEY: Final = "canary-embeddings-0123456789"
WHERE: Final[dict[str, tuple[float, float, float]]] = {
    "dog": (1.0, 0.1, 0.0),
    "puppy": (0.9, 0.2, 0.0),
    "pet": (0.95, 0.15, 0.0),
    "car": (0.0, 1.0, 0.1),
    "motor": (0.0, 0.9, 0.2),
    "rain": (0.0, 0.0, 1.0),
}
POISON: Final = "unspeakable"


class Places:
    """Answers `/v1/embeddings` like OpenAI. A text without a known word is similar to no other."""

    def __init__(self, server: HTTPServer) -> None:
        self.asked: list[list[str]] = []
        self.status = 200
        self.numbers = 4
        """Length of a vector: 4 or more."""
        self.address = server.url_for("/v1")
        server.expect_request("/v1/embeddings").respond_with_handler(self.answer)

    @property
    def texts(self) -> list[str]:
        return [text for texts in self.asked for text in texts]

    def answer(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        self.asked.append(body["input"])
        if self.status != 200:
            said = f"no more for {request.headers['authorization']}"
            return Response(json.dumps({"error": {"message": said}}), self.status, content_type="application/json")
        if any(POISON in text for text in body["input"]):
            return Response('{"error": {"message": "too long"}}', 400, content_type="application/json")
        size = body.get("dimensions", self.numbers)
        data: list[Json] = [
            {"object": "embedding", "index": number, "embedding": [*vector(text), *[0.0] * (size - 4)]}
            for number, text in enumerate(body["input"])
        ]
        usage: Json = {"prompt_tokens": 3, "total_tokens": 3}
        answer: Json = {"object": "list", "model": body["model"], "data": data, "usage": usage}
        return Response(json.dumps(answer), content_type="application/json")


def vector(text: str) -> list[float]:
    known = [WHERE[word] for word in text.lower().replace(",", " ").split() if word in WHERE]
    if not known:
        return [0.0, 0.0, 0.0, 1.0]
    summed = [sum(numbers) for numbers in zip(*known, strict=True)]
    length = math.sqrt(sum(number * number for number in summed))
    return [*(number / length for number in summed), 0.0]
