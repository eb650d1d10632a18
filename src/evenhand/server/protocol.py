"""What is no HTTP at all still gets the error envelope."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.server.answers import error_answer


class EnvelopeProtocol(HttpToolsProtocol):
    """uvicorn's protocol, except for its own plain-text answer to a malformed request."""

    def send_400_response(self, msg: str) -> None:
        answer = error_answer("INVALID_REQUEST", "This is not a valid HTTP request.")
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"x-content-type-options: nosniff\r\ncontent-length: %d\r\n\r\n" % len(answer.body)
        )
        self.transport.write(head + answer.body)
        self.transport.close()
