#!/usr/bin/env python3
"""The page of `tsomon report --html`: check_page.py TSOMON [DEADLOCKS BANK_TRANSFER]

Makes pages of traces, of hostile results and, with the two programs of the examples, of real recordings, and
parses them: tags balance, identifiers are unique, nothing is loaded from elsewhere and no name becomes markup; groups,
pictures and marked source lines are there; no file outside the folders of --source is read.
With Chromium on the machine the search and the filters are tried, too.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

VOID = {"meta", "br", "input", "link", "img"}
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


class Page(HTMLParser):
    """Elements by name, text, and what is wrong with the markup."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.elements = []
        self.ids = []
        self.wrong = []
        self.texts = []
        self.feed(text)
        self.close()
        self.wrong += ["open at the end: " + name for name, _ in self.open]

    def handle_starttag(self, name, attributes):
        attributes = dict(attributes)
        self.elements.append((name, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if any(key.startswith("on") or key in ("src", "href", "style") for key in attributes):
            self.wrong.append("attributes %s of %s" % (attributes, name))
        if name not in VOID:
            self.open.append((name, len(self.elements) - 1))

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        if name not in VOID:
            self.handle_endtag(name)

    def handle_endtag(self, name):
        if not self.open or self.open[-1][0] != name:
            self.wrong.append("</%s> after %s" % (name, self.open[-2:]))
        else:
            self.open.pop()

    def handle_data(self, data):
        # By the element it is in.
        if self.open:
            self.texts.append((self.open[-1][0], data))

    def of_class(self, name, wanted):
        return [a for n, a in self.elements if n == name and wanted in (a.get("class") or "").split()]

    def text(self, *names):
        return "".join(text for name, text in self.texts if not names or name in names)


def report(tsomon, folder, results, *options):
    path = os.path.join(folder, "results.json")
    with open(path, "w") as out:
        for result in results:
            out.write((result if isinstance(result, str) else json.dumps(result)) + "\n")
    done = subprocess.run([tsomon, "report", "--html", "-", *options, path], stdout=subprocess.PIPE, cwd=folder)
    expect(done.returncode == 0, "report ends with %d" % done.returncode)
    return done.stdout.decode()


def checked(text, what):
    page = Page(text)
    expect(not page.wrong, "%s: markup: %s" % (what, page.wrong[:3]))
    expect(len(page.ids) == len(set(page.ids)), what + ": identifiers twice")
    expect(len([n for n, _ in page.elements if n == "script"]) == 1, what + ": scripts")
    policy = [a["content"] for n, a in page.elements if n == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    expect(policy and "default-src 'none'" in policy[0], what + ": policy")
    pictures = [a for n, a in page.elements if n == "svg"]
    expect(all(a.get("role") == "img" and all(i in page.ids for i in a["aria-labelledby"].split()) for a in pictures),
           what + ": pictures without names")
    return page


def output(tsomon, folder, command, *names):
    done = subprocess.run([tsomon, *command, "--output", "json", *names], stdout=subprocess.PIPE, cwd=folder)
    return done.stdout.decode().splitlines()


TRACE = """T1|begin(inc)|src/a.c:2
T1|r(counter=0)|src/a.c:3
T2|begin(inc)|src/a.c:2
T2|r(counter=0)|src/a.c:3
T2|w(counter=1)|src/a.c:4
T2|fence|src/a.c:4
T2|end|src/a.c:5
T1|w(counter=1)|src/a.c:4
T1|fence|src/a.c:4
T1|end|src/a.c:5
"""
RACES = "".join("T1|w(shared)|r.c:%d\n" % line for line in range(10, 13)) + "".join(
    "T2|w(shared)|r.c:%d\n" % line for line in range(20, 23)) + "T1|w(other)|r.c:30\nT2|w(other)|r.c:40\n"
LATE = """T1|begin(a)|s.c:1
T1|w(x=1)|s.c:2
T1|r(y=0)|s.c:3
T1|end|s.c:4
T2|begin(b)|s.c:5
T2|w(y=1)|s.c:6
T2|r(x=0)|s.c:7
T2|end|s.c:8
"""
CIRCLE = "T0|acq(a)|x.cpp:1\nT1|acq(b)|x.cpp:2\nT0|request(b)|x.cpp:3\nT1|request(a)|x.cpp:4\n"
EXPLORED = {"schema": 1, "tool": "tsomon explore", "program": "p", "model": "tso", "executions": 3, "complete": True,
            "findings": [{"kind": "assertion", "schedule": "0,1x6,0a1x3,1cx3,0;aaa+1", "locations": ["read p.cpp:3"],
                          "text": "it failed", "fingerprint": "ab", "outcome": ""},
                         {"kind": "crash", "schedule": "0x9999999999,99999999c,x,,", "locations": [], "text": "",
                          "fingerprint": "ac"}]}
SOURCE = "int counter;\nvoid inc() {\n  int now = counter;\n  counter = now + 1; // <b>\n}\n"


def check_traces(tsomon, folder):
    for name, text in (("a.std", TRACE), ("r.std", RACES), ("s.std", LATE), ("circle.std", CIRCLE)):
        with open(os.path.join(folder, name), "w") as out:
            out.write(text)
    results = output(tsomon, folder, ["check"], "a.std", "circle.std") + output(
        tsomon, folder, ["check", "--property", "robustness"], "s.std") + output(
            tsomon, folder, ["predict", "--kinds", "races"], "r.std") + [json.dumps(EXPLORED)]
    text = report(tsomon, folder, results)
    page = checked(text, "traces")
    # Groups: the races of a variable are one group.
    findings = page.of_class("details", "finding")
    races = [f for f in findings if f["data-kind"] == "data-race"]
    expect({f["data-group"] for f in races} == {"shared", "other"}, "groups of races: %s" % races)
    expect(len([f for f in races if f["data-group"] == "shared"]) > 1, "races of shared")
    expect(len(page.of_class("details", "group")) == len({f["data-group"] for f in findings}), "groups")
    # Pictures: units, the cycle, late commits joined with their stores, both orders of a prediction.
    titles = page.text("figcaption")
    for wanted in ("A witness", "As it was recorded", "The predicted order", "The cycle", "Who waits for whom",
                   "The schedule that was explored"):
        expect(wanted in titles, "a picture of: " + wanted)
    expect(page.of_class("rect", "unit") and page.of_class("path", "late") and page.of_class("path", "commit"),
           "units and late commits")
    expect("overwritten by" in page.text("li"), "edges in words")
    expect("T0" in page.text("th") and "waits" in page.text("th") and "since #1 x.cpp:2" in page.text("td"),
           "the table of a deadlock")
    expect("6 steps" in page.text("text") and "3 stores take effect" in page.text("text"), "an explored schedule")
    return text


ARROW = re.compile(r'd="M(\d+) (\d+)H(\d+)V(\d+)H(\d+)V(\d+)H(\d+)"/><circle cx="(\d+)" cy="(\d+)"')
LABEL = re.compile(r'<text class="(?:what|at)[^"]*" x="(\d+)" y="(\d+)">([^<]*)</text>')


def check_arrows(text, least, what):
    """No arrow of a picture, and no number of one, lies over the text of a step."""
    arrows = 0
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        labels = [(int(x), int(y), len(html.unescape(label)) * 7) for x, y, label in LABEL.findall(svg)]
        for arrow in ARROW.findall(svg):
            arrows += 1
            x1, y1, x2, y2, x3, y3, x4, cx, cy = map(int, arrow)
            parts = [(x1, y1, x2, y1), (x2, y1, x2, y2), (x2, y2, x3, y2), (x3, y2, x3, y3), (x3, y3, x4, y3),
                     (cx - 8, cy - 8, cx + 8, cy + 8)]
            for x, y, width in labels:
                for ax, ay, bx, by in parts:
                    apart = max(ax, bx) < x or min(ax, bx) > x + width or max(ay, by) < y - 9 or min(ay, by) > y + 2
                    if not apart:
                        expect(False, "%s: an arrow over the text at %d, %d" % (what, x, y))
                        return
    expect(arrows >= least, "%s: %d arrows" % (what, arrows))


def check_sources(tsomon, folder):
    named = os.path.join(folder, "named", "deep", "src")
    os.makedirs(named)
    with open(os.path.join(named, "a.c"), "w") as out:
        out.write(SOURCE)
    with open(os.path.join(folder, "secret.c"), "w") as out:
        out.write("the secret\n" * 9)
    os.makedirs(os.path.join(folder, "elsewhere"))
    shutil.copy(os.path.join(folder, "secret.c"), os.path.join(folder, "elsewhere", "linked.c"))
    os.symlink(os.path.join(folder, "secret.c"), os.path.join(folder, "named", "out.c"))
    os.symlink(os.path.join(folder, "elsewhere"), os.path.join(folder, "named", "folder"))
    os.mkfifo(os.path.join(folder, "named", "pipe.c"))
    for name in ("one", "two"):
        os.makedirs(os.path.join(folder, "named", name))
        with open(os.path.join(folder, "named", name, "twice.c"), "w") as out:
            out.write("twice the same\n" * 9)
    with open(os.path.join(folder, "named", "large.c"), "w") as out:
        out.write("too large\n" * 600000)
    results = output(tsomon, folder, ["check"], "a.std")
    expect("int now" not in report(tsomon, folder, results), "source lines without --source")
    text = report(tsomon, folder, results, "--source", "named")
    page = checked(text, "sources")
    hits = page.of_class("tr", "hit")
    expect(len(hits) == 2, "%d marked lines" % len(hits))
    expect("int now = counter;" in page.text("code") and "// <b>" in page.text("code"), "the lines")
    expect("T1 #1 load counter = 0" in page.text("span"), "marks with thread and event")
    hostile = ["%s/secret.c" % folder, "../secret.c", "named/../secret.c", "out.c", "folder/linked.c", "linked.c",
               "pipe.c", "/etc/passwd", "..", "", "/", "twice.c", "large.c", "x" * 5000]
    findings = [dict(tool="tsomon check", file="f", property="serializability", verdict="possible", complete=True,
                     findings=[{"verdict": "possible", "count": 1, "fingerprint": "%d" % i, "accesses": [
                         {"event": 1, "thread": "T1", "operation": "load", "variable": "v", "file": name, "line": 1,
                          "location": "there"}]} for i, name in enumerate(hostile)])]
    text = report(tsomon, folder, findings, "--source", "named")
    checked(text, "hostile sources")
    for never in ("the secret", "root:", "twice the same", "too large"):
        expect(never not in text, "read although it should not be: " + never)
    done = subprocess.run([tsomon, "report", "--html", "-", "--source", "nowhere", "results.json"], cwd=folder,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    expect(done.returncode == 2, "a folder that is not there")


BAD = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e\x1b[0m&lt;"


def hostile(value):
    """Every text of a result, hostile; fields that say what a result is are left."""
    if isinstance(value, dict):
        return {key: each if key in ("tool", "edge", "property", "schema") else hostile(each)
                for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return value + BAD if isinstance(value, str) else value


def check_hostile(tsomon, folder, source):
    with open(os.path.join(folder, "results.json")) as old:
        del old
    results = output(tsomon, folder, ["check"], "a.std", "circle.std") + output(
        tsomon, folder, ["predict"], "r.std") + [json.dumps(EXPLORED)]
    text = report(tsomon, folder, [hostile(json.loads(line)) for line in results])
    page = checked(text, "hostile names")
    expect("<img" not in text and "<script>alert" not in text, "names became markup")
    expect("\x1b" not in text and "\u202e" not in text, "control characters")
    expect(len(page.of_class("details", "finding")) > 3, "hostile findings")


def race(label, first, second, otherwise):
    return {"label": label, "first": {"access": "load", "location": first}, "second": {"access": "store", "location": second},
            "otherwise": otherwise}


def check_decisions(tsomon, folder):
    """The tree of what decided: sequences with a common beginning are one branch."""
    def result(sequences, **more):
        return {"tool": "tsomon critical-races", "program": "./client", "model": "tso", "leaves": 40, "faulty": 33, "complete": True,
                "sequences": [{"labels": "", "count": count, "races": races} for count, races in sequences], **more}

    bad, good = race("BG", "add a.cpp:8", "add a.cpp:9", "B"), race("G", "get b.cpp:3", "add a.cpp:9", "W")
    fault = {"kind": "assertion", "text": "no sum", "locations": ["get b.cpp:3"], "schedule": "0,1x2", "steps": 3}
    text = report(tsomon, folder, [result([(20, [bad]), (4, [bad, good]), (9, [race("WG", "x.c:1", "x.c:2", "G")])], faults=[fault])])
    page = checked(text, "decisions")
    expect("7 good and 33 faulty interleavings under TSO" in page.text(), "good and faulty ones are counted")
    expect(page.text("code").count("load") == 3, "three races for four places in the sequences")
    expect("(24 faulty interleavings)" in page.text("span"), "those with a common beginning are summed")
    expect(len(page.of_class("li", "good")) == 1 and len(page.of_class("li", "bad")) == 4, "good and bad leaves")
    expect("bad, whatever comes later: 20 faulty interleavings" in page.text("li"), "what ends at a race")
    expect("G, it depends on later races" in page.text("li"), "what is still open")
    lists = text[text.index('<ul class="decisions">'):]
    lists = lists[:lists.index("</details>")]
    expect(lists.index("add a.cpp:8") < lists.index("get b.cpp:3") < lists.index("x.c:1"), "the next race lies below the first")
    expect(lists[:lists.index("get b.cpp:3")].count("<ul") - lists[:lists.index("get b.cpp:3")].count("</ul") == 2, "one level below")
    expect(len(page.of_class("details", "finding")) == 1 and "no sum" in page.text(), "the fault is a finding")
    # The same of an exploration.
    decided = {"leaves": 40, "faulty": 24, "root": "BG", "nodes": 9, "runs": 4, "complete": True,
               "sequences": [{"labels": "BG", "count": 20, "races": [bad]}, {"labels": "BG G", "count": 4, "races": [bad, good]}]}
    explored = {"tool": "tsomon explore", "program": "./client", "model": "sc", "strategy": "dpor", "executions": 3, "complete": True,
                "findings": [fault], "decided": decided}
    page = checked(report(tsomon, folder, [explored]), "decisions of an exploration")
    expect("16 good and 24 faulty interleavings under SC" in page.text(), "good and faulty ones of an exploration are counted")
    expect(page.text("code").count("load") == 2 and len(page.of_class("details", "finding")) == 1, "races and findings of an exploration")
    text = report(tsomon, folder, [{**explored, "decided": None}, {**explored, "decided": 3}, {**explored, "decided": []}])
    expect("What decided" not in text, "what is no tree")
    # Deep, many, and hostile.
    deep = [race("GG", "deep.c:%d" % i, "other.c:%d" % i, "GG") for i in range(100000)]
    many = [(1, [race("G", "many.c:%d" % i, "other.c:1", "W")]) for i in range(20000)]
    text = report(tsomon, folder, [result([(1, deep)]), result(many), hostile(result([(2, [bad, good])], faults=[fault])),
                                   result([(1, "no list"), ("many", [1, None, {"first": 3, "second": []}])], sequences_of=3)])
    page = checked(text, "many decisions")
    expect("<img" not in text and "<script>alert" not in text and "\x1b" not in text, "names of races became markup")
    expect(len(text) < 20000000 and "... and more races of" in page.text("li"), "large trees are cut")


def check_size(tsomon, folder):
    def access(i, event):
        return {"event": event, "thread": "T%d" % (event % 40), "operation": "store", "written": event,
                "variable": "v%d+0x%x" % (i % 50, event), "location": "function_of_some_length file_%d.cpp:%d" % (i, event),
                "function": "function_of_some_length", "file": "/src/file_%d.cpp" % i, "line": event + 1}

    steps = [{"issue": e} for e in range(70)] + [{"commit": e} for e in range(70)]
    cycle = [{"thread": "T%d" % (e % 40), "label": "unit", "first": e, "last": e, "edge": "conflict", "from": e,
              "to": (e + 1) % 70, "reason": "conflict, in the order of the trace"} for e in range(70)]
    results = [{"tool": "tsomon check", "file": "f", "property": "serializability", "verdict": "definite", "events": 10000000,
                "complete": False, "notes": ["events were lost"] * 100,
                "findings": [{"verdict": "definite", "count": i + 1, "fingerprint": "%d" % i, "cycle": cycle,
                              "witness": steps, "accesses": [access(i, e) for e in range(70)]} for i in range(1000)]}]
    text = report(tsomon, folder, results)
    page = checked(text, "many findings")
    expect(len(text) < 20000000, "a page of %d bytes" % len(text))
    expect("steps not shown" in page.text("text"), "long witnesses are cut")
    check_arrows(text[:1000000], 100, "long witnesses")
    expect(len(page.of_class("details", "finding")) + 0 == 1000 or "have no room" in text, "findings that are left out")
    opened = [f for f in page.of_class("details", "finding") if "open" in f]
    expect(0 < len(opened) <= 20, "%d findings are open" % len(opened))
    expect(len(page.of_class("details", "group")) <= 1000, "groups")


def check_browser(folder, text):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("skipped: the script of the page, as there is no Chromium")
        return
    path = os.path.join(folder, "page.html")
    with open(path, "w") as out:
        out.write(text)

    def shown(address):
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + folder + "/profile",
                               "--dump-dom", "file://%s#%s" % (path, address)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        page = Page(done.stdout.decode())
        return page, [f for f in page.of_class("details", "finding") if "off" not in f["class"].split()]

    page, every = shown("")
    if not every:
        print("skipped: the script of the page, as Chromium shows nothing here")
        return
    expect("hidden" not in page.of_class("div", "tools")[0], "the tools are shown")
    _, found = shown("q=counter")
    expect(found and all(f["data-group"] == "counter" for f in found), "the search: %s" % found)
    _, found = shown("kind=data-race&verdict=predicted&q=shared")
    expect(found and {f["data-group"] for f in found} == {"shared"}, "the filters: %s" % found)
    _, found = shown("q=nothing+has+this")
    expect(not found, "a search for nothing")
    page, _ = shown(every[-1]["id"])
    expect("open" in [f for f in page.of_class("details", "finding") if f["id"] == every[-1]["id"]][0], "an address of a finding")


EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def check_recording(tsomon, folder, program):
    done = subprocess.run([tsomon, "record", "-o", "run.tsomon", "--", program, "inversion"], cwd=folder,
                          stdout=subprocess.DEVNULL)
    expect(done.returncode == 0, "record")
    results = output(tsomon, folder, ["predict"], "run.tsomon")
    page = checked(report(tsomon, folder, results, "--source", os.path.join(EXAMPLES, "deadlocks")), "a recording")
    expect("The predicted order" in page.text("figcaption") and "waits: " in page.text("text"), "the predicted order")
    expect("Who waits for whom" in page.text("figcaption"), "who waits for whom")
    expect(page.of_class("tr", "hit"), "source lines of a recording")


def check_capture(tsomon, folder, program):
    """A capture that `report` judges itself has the same source lines as the results of `check`."""
    subprocess.run([tsomon, "record", "-o", "bank.tsomon", "--", program], cwd=folder, stdout=subprocess.DEVNULL)
    options = ["--source", os.path.join(EXAMPLES, "bank_transfer")]
    by_check = checked(report(tsomon, folder, output(tsomon, folder, ["check"], "bank.tsomon"), *options), "results")
    done = subprocess.run([tsomon, "report", "--html", "-", *options, "bank.tsomon"], stdout=subprocess.PIPE, cwd=folder)
    by_report = checked(done.stdout.decode(), "a capture")
    check_arrows(done.stdout.decode(), 2, "a capture")
    expect(by_check.of_class("tr", "hit"), "source lines of a capture's results")
    expect(len(by_report.of_class("tr", "hit")) == len(by_check.of_class("tr", "hit")), "source lines of a capture")


def main():
    tsomon = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        text = check_traces(tsomon, folder)
        check_arrows(text, 3, "traces")
        check_sources(tsomon, folder)
        check_hostile(tsomon, folder, SOURCE)
        check_decisions(tsomon, folder)
        check_size(tsomon, folder)
        if len(sys.argv) > 2:
            check_recording(tsomon, folder, os.path.abspath(sys.argv[2]))
            check_capture(tsomon, folder, os.path.abspath(sys.argv[3]))
        check_browser(folder, text)
    print("failed" if failures else "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
