"""The control plane of a simulator in another process, as its callers see it."""

import json
import urllib.request
from typing import Any

_PATIENCE_S = 60.0


def control(control_url: str, method: str, path: str, body: object = None) -> Any:
    """The answer to one call below `/_sim`, read as JSON.

    Raises:
        urllib.error.HTTPError: the simulator refuses.
        OSError: it does not answer.
    """
    headers = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{control_url}{path}", method=method, data=data, headers=headers)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310 - likewise
        return json.loads(answer.read() or b"null")
