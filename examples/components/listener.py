"""Somebody to send to: prints each line that `line_tcp` sends to 127.0.0.1:9009, and answers that all is well."""

import socketserver


class Lines(socketserver.StreamRequestHandler):
    """Reads up to an empty line."""

    def handle(self) -> None:
        """Print and answer."""
        while line := self.rfile.readline().strip():
            print(line.decode(), flush=True)
        self.wfile.write(b"ok\n")


if __name__ == "__main__":
    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("127.0.0.1", 9009), Lines) as server:
        server.serve_forever()
