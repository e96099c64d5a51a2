"""A real SMTP server that keeps the mail it is given."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from email.message import Message

from answering import answering

__all__ = ["MailServer", "mail_server"]


class MailServer:
    """``mails`` are envelope receivers and message. ``refuse`` answers every mail with 451."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Message]] = []
        self.refuse = False
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def say(self, line: str) -> None:
                self.wfile.write(f"{line}\r\n".encode())

            def handle(self) -> None:
                self.say("220 here")
                receivers: list[str] = []
                while line := self.rfile.readline().decode().strip():
                    verb = line.split(" ")[0].upper()
                    if verb == "QUIT":
                        self.say("221 bye")
                        return
                    if verb == "RCPT":
                        receivers.append(line.partition("<")[2].rstrip(">").partition(">")[0])
                    if verb == "DATA":
                        self.data(receivers)
                    else:
                        self.say("250 ok")

            def data(self, receivers: list[str]) -> None:
                self.say("354 go on")
                lines = []
                while (line := self.rfile.readline().decode()) != ".\r\n":
                    lines.append(line.removeprefix("."))
                if outer.refuse:
                    self.say("451 not now")
                    return
                outer.mails.append((receivers, message_from_string("".join(lines))))
                self.say("250 kept")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]


@contextmanager
def mail_server() -> Iterator[MailServer]:
    made = MailServer()
    with answering(made.server):
        yield made
