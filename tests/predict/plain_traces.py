"""Text traces of plain accesses, locks, forks and joins, as RAPID writes them, and what can be said
about their reorderings without any code of the project's."""

import dataclasses
import re

LINE = re.compile(r"^(\w+)\|(\w+)\(([^)]*)\)\|(.*)$")


@dataclasses.dataclass(frozen=True)
class Event:
    thread: str
    kind: str  # r, w, acq, rel, fork, join
    what: str


class Trace:
    """The events of a text trace. `fork(122)` starts `T122`, as in RAPID's own."""

    def __init__(self, text):
        self.events = []
        for line in text.splitlines():
            if line:
                thread, kind, what = LINE.match(line).groups()[:3]
                if kind in ("fork", "join") and what.isdigit():
                    what = "T" + what
                self.events.append(Event(thread, kind, what))
        self.threads = {}
        self.forks = {}
        self.source = {}  # of a read, the write that it sees
        writes = {}
        for number, event in enumerate(self.events):
            self.threads.setdefault(event.thread, []).append(number)
            if event.kind == "r":
                self.source[number] = writes.get(event.what)
            elif event.kind == "w":
                writes[event.what] = number
            elif event.kind == "fork":
                self.forks[event.what] = number

    def text(self):
        """Each event at a line of its own, forks of threads that do nothing left out; with it the
        numbers of the events that are left."""
        lines, numbers = [], []
        for number, event in enumerate(self.events):
            if event.kind in ("fork", "join") and event.what not in self.threads:
                continue
            lines.append(f"{event.thread}|{event.kind}({event.what})|{len(lines)}\n")
            numbers.append(number)
        return "".join(lines), numbers

    def conflict(self, first, second):
        one, other = self.events[first], self.events[second]
        return (one.thread != other.thread and one.what == other.what and
                {one.kind, other.kind} in ({"w"}, {"r", "w"}))

    def whole(self, race):
        """The order of a race of `tsomon predict --output json`."""
        if race["witness"] is not None:
            return race["witness"]
        short = race["short_witness"]
        last = {self.events[number].thread: number for number in short["last"]}
        front = [number for number, event in enumerate(self.events)
                 if number <= last.get(event.thread, -1)]
        return front + short["tail"]

    def refuse(self, order, first, second):
        """Why this order does not show a race of the two, or None. All reads but these two have to
        see what they saw."""
        if sorted(order[-2:]) != sorted((first, second)) or not self.conflict(first, second):
            return "it does not end with two accesses in conflict"
        done = dict.fromkeys(self.threads, 0)
        writes, holders = {}, {}
        for number in order:
            event = self.events[number]
            if self.threads[event.thread][done[event.thread]] != number:
                return f"#{number} is not the next of its thread"
            if done[event.thread] == 0 and event.thread in self.forks:
                parent = self.forks[event.thread]
                if self.threads[self.events[parent].thread].index(parent) >= \
                        done[self.events[parent].thread]:
                    return f"#{number} comes before the fork"
            if event.kind in ("acq", "rel"):  # a thread may acquire again what it holds
                held = holders.setdefault(event.what, [])
                if event.kind == "acq":
                    if held and held[0] != event.thread:
                        return f"#{number} acquires what another thread holds"
                    held.append(event.thread)
                elif not held or held.pop() != event.thread:
                    return f"#{number} releases what its thread does not hold"
            if event.kind == "join" and done.get(event.what, 0) < len(self.threads.get(event.what, [])):
                return f"#{number} comes before the end of the thread"
            if event.kind == "r" and number not in (first, second) and \
                    writes.get(event.what) != self.source[number]:
                return f"#{number} reads another write"
            if event.kind == "w":
                writes[event.what] = number
            done[event.thread] += 1
        return None

    def racy(self, second, max_states):
        """An earlier access that can be next together with `second`, in any reordering whose reads
        see what they saw; None if there is none, False if there are too many states to say."""
        names = list(self.threads)
        place = {number: (names.index(event.thread), self.threads[event.thread].index(number))
                 for number, event in enumerate(self.events)}
        variables = sorted({event.what for event in self.events if event.kind in "rw"})
        stop = place[second]
        start = (tuple(0 for _ in names), tuple(-1 for _ in variables))
        seen, todo = {start}, [start]
        while todo:
            if len(seen) > max_states:
                return False
            done, writes = todo.pop()
            ahead = [self.threads[name][done[i]] if done[i] < len(self.threads[name]) else None
                     for i, name in enumerate(names)]
            ahead = [None if number is not None and done[i] == 0 and names[i] in self.forks and
                     place[self.forks[names[i]]][1] >= done[place[self.forks[names[i]]][0]]
                     else number for i, number in enumerate(ahead)]
            if ahead[stop[0]] == second:
                for number in ahead:
                    if number is not None and number < second and self.conflict(number, second):
                        return number
            held = {}
            for i, name in enumerate(names):
                for number in self.threads[name][:done[i]]:
                    event = self.events[number]
                    if event.kind in ("acq", "rel"):
                        key = event.what, name
                        held[key] = held.get(key, 0) + (1 if event.kind == "acq" else -1)
            for i, number in enumerate(ahead):
                if number is None or number == second:
                    continue
                event, after = self.events[number], writes
                if event.kind == "acq" and any(
                        depth and key[0] == event.what and key[1] != event.thread
                        for key, depth in held.items()):
                    continue
                if event.kind == "join" and \
                        done[names.index(event.what)] < len(self.threads[event.what]):
                    continue
                if event.kind in "rw":
                    variable = variables.index(event.what)
                    if event.kind == "r":
                        seen_write = self.source[number]
                        if writes[variable] != (-1 if seen_write is None else seen_write):
                            continue
                    else:
                        after = writes[:variable] + (number,) + writes[variable + 1:]
                state = (done[:i] + (done[i] + 1,) + done[i + 1:], after)
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return None
