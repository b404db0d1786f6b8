"""As much of the NATS protocol as the checks of fleets need."""
import json
import socket


class Nats:
    """A connection to a server on this machine."""

    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port), 10).makefile("rwb")
        self.file.readline()
        self.send(b'CONNECT {"verbose":false,"lang":"python","version":"0"}\r\nSUB answer 1\r\n')

    def send(self, data):
        self.file.write(data)
        self.file.flush()

    def ask(self, subject, question):
        return self.publish(subject, json.dumps(question).encode() if question is not None else b"")

    def publish(self, subject, payload):
        self.send(b"PUB %s answer %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
        while True:
            words = self.file.readline().split()
            if words and words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words and words[0] == b"MSG":
                answer = self.file.read(int(words[-1]) + 2)
                return json.loads(answer)
