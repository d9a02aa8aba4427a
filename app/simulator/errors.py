"""How the simulated API says no."""


class ApiError(Exception):
    """An answer of 400 or more; `code` and `message` become the JSON body that Verda's OpenAPI defines."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


def invalid(message: str) -> ApiError:
    """400: the request makes no sense."""
    return ApiError(400, "invalid_request", message)


def unauthorized(message: str = "Access token is missing or invalid") -> ApiError:
    """401: who are you?"""
    return ApiError(401, "unauthorized_request", message)


def no_funds() -> ApiError:
    """402: the prepaid balance does not cover it."""
    return ApiError(402, "insufficient_funds", "Not enough funds to perform the action")


def forbidden(message: str) -> ApiError:
    """403: understood, and refused."""
    return ApiError(403, "forbidden_action", message)


def not_found(message: str = "Resource not found, or invalid path") -> ApiError:
    """404: there is no such thing."""
    return ApiError(404, "not_found", message)


def conflict(message: str) -> ApiError:
    """409: it is already so."""
    return ApiError(409, "conflict", message)


def no_capacity() -> ApiError:
    """503 in JSON: the API's normal answer to a lack of machines (Verda OpenAPI, `POST /v1/instances`)."""
    return ApiError(503, "service_unavailable", "No capacity available")
