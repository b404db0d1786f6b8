"""What a viewer makes of the two forms that `tsomon report --perfetto` writes: the JSON of the trace event format, and Perfetto's protobuf.

A picture is the list of its processes in order: (name, [(thread, slices)]), and its arrows. A slice is (begin, end, name, categories,
arguments, depth), times in microseconds; an arrow is (process, thread, slice name) twice and a text. Whatever a viewer would drop is an
error here: slices that cross, ends without a beginning, arrows whose ends are missing or in the wrong order."""
import json
import struct


class Malformed(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Malformed(what)


def nested(spans):
    """Slices of one thread with their depths, in the order in which they begin."""
    result, open_ends = [], []
    for begin, end, *rest in sorted(spans, key=lambda span: (span[0], -span[1])):
        expect(begin < end, f"slice of no length at {begin}: {rest}")
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        expect(not open_ends or end <= open_ends[-1], f"slices cross at {begin}: {rest}")
        result.append((begin, end, *rest, len(open_ends)))
        open_ends.append(end)
    return result


def innermost(slices, time):
    inside = [each for each in slices if each[0] <= time < each[1]]
    expect(inside, f"an arrow ends at {time}, where nothing is")
    return max(inside, key=lambda each: each[-1])


def picture(processes, threads, spans, arrows):
    """`arrows`: ((pid, tid, time), (pid, tid, time), text)."""
    slices = {track: nested(spans.get(track, [])) for track in threads}
    expect(set(spans) <= set(threads), "slices of threads without a name")
    named = []
    for begin, end, text in arrows:
        expect(begin[2] < end[2], f"an arrow goes back in time: {text}")
        ends = [(processes[pid], threads[pid, tid], innermost(slices[pid, tid], time)[2]) for pid, tid, time in (begin, end)]
        named.append((*ends, text))
    return [(name, [(thread, slices[track]) for track, thread in threads.items() if track[0] == pid])
            for pid, name in processes.items()], sorted(named)


def read_json(data):
    processes, threads, spans, starts, arrows = {}, {}, {}, {}, []
    for event in json.loads(data)["traceEvents"]:
        track = (event["pid"], event["tid"])
        if event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            threads[track] = event["args"]["name"]
        elif event["ph"] == "X":
            span = (event["ts"], event["ts"] + event["dur"], event["name"], sorted(event["cat"].split(",")), event["args"])
            spans.setdefault(track, []).append(span)
        elif event["ph"] == "s":
            expect(event["id"] not in starts, "two arrows with one id")
            starts[event["id"]] = (*track, event["ts"])
        elif event["ph"] == "f":
            arrows.append((starts.pop(event["id"]), (*track, event["ts"]), event["name"]))
    expect(not starts, "arrows without an end")
    return picture(processes, threads, spans, arrows)


def fields(data):
    """Those of a message: [(number, value)]; an int for varint and fixed64, bytes for what has a length."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            expect(at < len(data) and shift < 64, "varint cut off")
            value |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            found.append((number, varint()))
        elif kind == 1:
            expect(at + 8 <= len(data), "fixed64 cut off")
            found.append((number, struct.unpack_from("<Q", data, at)[0]))
            at += 8
        else:
            expect(kind == 2, f"wire type {kind}")
            size = varint()
            expect(at + size <= len(data), "message cut off")
            found.append((number, data[at:at + size]))
            at += size
    return found


def one(message, number, default=None):
    values = [value for field, value in message if field == number]
    expect(len(values) == 1 or (not values and default is not None), f"field {number}: {len(values)} values")
    return values[0] if values else default


def annotations(event):
    found = []
    for number, value in event:
        if number == 4:
            annotation = fields(value)
            text = [content.decode() for field, content in annotation if field == 6]
            found.append((one(annotation, 10).decode(), text[0] if text else one(annotation, 3)))
    return found


def read_protobuf(data):
    processes, threads, spans, starts, flow_texts, arrows = {}, {}, {}, {}, {}, []
    tracks, stacks, sequences, ids = {}, {}, set(), set()
    last = 0
    for number, content in fields(data):
        expect(number == 1, "a trace has packets")
        packet = fields(content)
        sequences.add(one(packet, 10))
        numbers = [field for field, value in packet]
        if 60 in numbers:
            descriptor = fields(one(packet, 60))
            uuid = one(descriptor, 1)
            expect(uuid not in tracks and uuid != 0, "a track's id is its own")
            if 3 in dict(descriptor):
                process = fields(one(descriptor, 3))
                tracks[uuid] = (one(process, 1), 0)
                processes[one(process, 1)] = one(process, 6).decode()
                expect(one(process, 1) not in ids, "two processes or threads have one number")
                ids.add(one(process, 1))
                last = 0
            else:
                thread = fields(one(descriptor, 4))
                tracks[uuid] = (one(thread, 1), one(thread, 2))
                expect(tracks[one(descriptor, 5)] == (one(thread, 1), 0), "a thread's parent is its process")
                threads[tracks[uuid]] = one(thread, 5).decode()
                expect(one(thread, 2) not in ids, "two processes or threads have one number")
                ids.add(one(thread, 2))
            continue
        time, event = one(packet, 8), fields(one(packet, 11))
        expect(one(packet, 58) == 6 and time % 1000 == 0 and time >= last, "the times of a finding ascend, on the clock of boots")
        last, time = time, time // 1000
        track = tracks[one(event, 11)]
        stack = stacks.setdefault(track, [])
        if one(event, 9) == 2:
            expect(stack, "an end without a beginning")
            begin, name, categories, arguments = stack.pop()
            spans.setdefault(track, []).append((begin, time, name, categories, arguments))
            continue
        expect(one(event, 9) == 1, "slices only")
        notes = annotations(event)
        categories = sorted(value.decode() for field, value in event if field == 22)
        stack.append((time, one(event, 23).decode(), categories, {name: value for name, value in notes if name != "edge"}))
        texts = [value for name, value in notes if name == "edge"]
        flows = [value for field, value in event if field == 47]
        expect(len(texts) == len(flows), "each arrow has a text")
        for flow, text in zip(flows, texts):
            expect(flow not in starts, "two arrows with one id")
            starts[flow] = (*track, time)
            flow_texts[flow] = text
        for flow in (value for field, value in event if field == 48):
            arrows.append((starts.pop(flow), (*track, time), flow_texts[flow]))
    expect(not starts and not any(stacks.values()), "what begins ends")
    expect(len(sequences) <= 1, "one sequence")
    return picture(processes, threads, spans, arrows)
