"""Randomness without a global generator.

Every draw comes from its own generator, keyed by seed, stream name and key, so a new draw in one place never shifts
another, and the same seed with the same ordered inputs gives the same world byte for byte.
"""

import base64
import hashlib
import json
import random
import uuid

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Chance:
    """Source of everything unpredictable in the simulated cloud; stateless, so it needs no saving."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def _digest(self, stream: str, key: object) -> bytes:
        return hashlib.sha256(f"{self.seed}|{stream}|{key}".encode()).digest()

    def stream(self, stream: str, key: object) -> random.Random:
        """A fresh generator for one purpose; asking twice gives the same sequence twice."""
        return random.Random(self._digest(stream, key))  # noqa: S311 - reproducible on purpose

    def happens(self, stream: str, key: object, probability: float) -> bool:
        """True with the given probability, always the same answer for the same key."""
        return probability > 0 and self.stream(stream, key).random() < probability

    def uuid(self, kind: str, ordinal: object) -> str:
        """An id that looks like a version-4 UUID, the only form Verda's ids take."""
        return str(uuid.UUID(bytes=self._digest(f"id:{kind}", ordinal)[:16], version=4))

    def tag_id(self, key: str, value: str) -> str:
        """A tag's id: the same pair gets the same id wherever it is applied (Verda OpenAPI, changelog 2026-09-11)."""
        number = int.from_bytes(self._digest("tag", f"{key}={value}")[:17], "big")
        digits = []
        for _ in range(22):
            number, digit = divmod(number, 62)
            digits.append(_BASE62[digit])
        return "tag_" + "".join(digits)

    def volume_name(self, key: str) -> str:
        """The name of an OS volume that was not given one, such as `OS-NVMe-84Ca37Jf`."""
        return "OS-NVMe-" + self.tag_id("volume", key)[-8:]

    def token(self, kind: str, ordinal: int) -> str:
        """A string in the shape of a JSON web token; it carries nothing and proves nothing."""
        claims = {"jti": self.uuid(f"token:{kind}", ordinal), "kind": kind}
        parts = (b'{"alg":"HS256","typ":"JWT"}', json.dumps(claims).encode(), self._digest(f"sign:{kind}", ordinal))
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
