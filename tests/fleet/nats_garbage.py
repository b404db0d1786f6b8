"""Puts into the queue of a NATS server what is no work: nats_garbage.py PORT"""
import sys

from nats_protocol import Nats

server = Nats(int(sys.argv[1]))
message = server.ask("$JS.API.STREAM.MSG.GET.TSOMON_WORK_default", {"seq": 1})["message"]["data"]
for number, text in enumerate((b"garbage", b"{}", b"x" * 1_000_000, __import__("base64").b64decode(message))):
    answer = server.publish(f"tsomon.work.default.{number}", text)
    assert "seq" in answer, answer
