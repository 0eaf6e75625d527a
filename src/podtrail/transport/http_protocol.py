"""One HTTP connection: errors that come up before or beside the handler are answered in OTLP's form as well."""

import logging

from aiohttp import web

from podtrail.otlp.responses import status, status_json
from podtrail.transport.status import Code, Encoding, RequestError

_log = logging.getLogger(__name__)


def request_encoding(request: web.BaseRequest) -> Encoding | None:
    """Return how a request says it is written; None when that is neither protobuf nor JSON."""
    try:
        return Encoding(request.content_type)
    except ValueError:
        return None


def error_response(request: web.BaseRequest, error: RequestError) -> web.Response:
    """Return an error as google.rpc.Status in the request's encoding; JSON, which anyone can read, when it has none."""
    encoding = request_encoding(request) or Encoding.JSON
    encode = status if encoding is Encoding.PROTOBUF else status_json
    response = web.Response(
        status=error.http_status,
        body=encode(error.code, error.message, error.retry_after),
        content_type=encoding.value,
    )
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, -int(-error.retry_after // 1)))
    return response


class Protocol(web.RequestHandler):
    """aiohttp's connection, but for its answers to bytes that are no HTTP and to handlers that fail."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what went wrong outside of the handler, and close the connection."""
        if status < 500:
            _log.debug("not HTTP, from %s: %s", request.remote, message)
            error = RequestError(Code.INVALID_ARGUMENT, status, message or "not an HTTP request", reason="malformed")
        else:
            _log.error("request from %s failed", request.remote, exc_info=exc)
            error = RequestError.failed("internal error, podtrail's log says more")
        response = error_response(request, error)
        response.force_close()
        return response
