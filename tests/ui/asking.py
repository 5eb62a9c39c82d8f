"""Requests to the server of the web page, and its answers."""

from typing import Any

from starlette.testclient import TestClient


def got(client: TestClient, path: str, status: int = 200, **query: object) -> Any:
    response = client.get(f"/api/{path}", params={name: str(value) for name, value in query.items() if value is not None})
    assert response.status_code == status, response.text
    assert response.content.isascii()
    return response.json()


def places(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in rows]
