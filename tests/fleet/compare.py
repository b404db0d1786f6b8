"""Whether each window has one verdict, that of a machine alone: compare.py WINDOWS, in the folder of check_fleet."""
import concurrent.futures
import json
import os
import subprocess
import sys

windows = int(sys.argv[1])
status = json.load(open("status", encoding="utf-8"))
ids = {}
for submitter in range(4):
    for line in open(f"submitted.{submitter}", encoding="utf-8"):
        record = json.loads(line)
        name = int(record["file"].split("/")[-1].split(".")[0])
        assert ids.setdefault(name, record["id"]) == record["id"], record
assert len(ids) == windows, (len(ids), windows)
distinct = len(set(ids.values()))
assert (status["waiting"], status["running"], status["parked"]) == (0, 0, 0), status
assert status["done"] == distinct, (status, distinct)


def compare(name, work):
    *expected, expected_status = open(f"single/{name}", encoding="utf-8").read().splitlines()
    shown = subprocess.run(["tsomon", "fleet", "show", work], capture_output=True, text=True, check=False)
    assert shown.returncode == int(expected_status), (name, shown)
    lines = shown.stdout.splitlines()
    # Equal files are one piece of work, which has the name of the first.
    for a, b in zip(lines, expected, strict=True):
        one, other = json.loads(a), json.loads(b)
        one.pop("file"), other.pop("file")
        assert one == other, (name, one, other)


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    list(pool.map(compare, *zip(*ids.items())))
