"""Deletes what a NATS server of check_fleet has acknowledged: nats_delete.py PORT CHUNKS

The first CHUNKS chunks, ten verdicts, and a whole queue.
"""
import sys

from nats_protocol import Nats


def main():
    server, chunks = Nats(int(sys.argv[1])), int(sys.argv[2])
    for stream, number in (("KV_TSOMON_CHUNK", chunks), ("KV_TSOMON_VERDICT", 10)):
        state = server.ask(f"$JS.API.STREAM.INFO.{stream}", None)["state"]
        answer = server.ask(f"$JS.API.STREAM.PURGE.{stream}", {"seq": state["first_seq"] + number})
        assert answer["success"], answer
    answer = server.ask("$JS.API.STREAM.DELETE.TSOMON_WORK_tenant-1", None)
    assert answer["success"], answer


main()
