"""What SARIF 2.1.0 (OASIS) asks of a log, for the objects and properties that `tsomon report --sarif` writes.

Strict: a property that is not listed here is a fault, also one that the standard has: whoever adds it adds its rule. Beside what
the standard's schema says, references are resolved: rules by their id, ids of locations in a result, the order of steps.
faults(log) is a list of texts; empty: there is none.
"""
import re

# Names of objects, then what each property has to be; '!' in front: it has to be there.
OBJECTS = {
    "sarifLog": {"!version": "version", "$schema": "uri", "!runs": ["run"]},
    "run": {"!tool": "tool", "columnKind": "columnKind", "invocations": ["invocation"], "results": ["result"]},
    "tool": {"!driver": "toolComponent"},
    "toolComponent": {"!name": "text", "version": "text", "rules": ["reportingDescriptor"]},
    "reportingDescriptor": {"!id": "text", "name": "text", "shortDescription": "multiformatMessageString",
                            "fullDescription": "multiformatMessageString"},
    "multiformatMessageString": {"!text": "text"},
    "invocation": {"!executionSuccessful": "bool", "toolExecutionNotifications": ["notification"]},
    "notification": {"!message": "message", "level": "level"},
    "result": {"!message": "message", "ruleId": "text", "level": "level", "locations": ["location"], "relatedLocations": ["location"],
               "codeFlows": ["codeFlow"], "partialFingerprints": "texts", "occurrenceCount": "from 1", "properties": "any object"},
    "message": {"!text": "message text"},
    "location": {"id": "from 0", "physicalLocation": "physicalLocation", "logicalLocations": ["logicalLocation"], "message": "message"},
    "physicalLocation": {"!artifactLocation": "artifactLocation", "region": "region"},
    "artifactLocation": {"!uri": "uri"},
    "region": {"!startLine": "from 1"},
    "logicalLocation": {"!fullyQualifiedName": "text"},
    "codeFlow": {"!threadFlows": ["threadFlow"]},
    "threadFlow": {"id": "text", "!locations": ["threadFlowLocation"]},
    "threadFlowLocation": {"location": "location", "executionOrder": "from 0"},
}
# Arrays that must not be empty, and those whose elements must differ.
NOT_EMPTY = {("codeFlow", "threadFlows"), ("threadFlow", "locations")}
DIFFERENT = {("run", "invocations"), ("toolComponent", "rules"), ("result", "relatedLocations"), ("location", "logicalLocations")}
# RFC 3986: what a reference is made of.
URI = re.compile(r"(?:[A-Za-z0-9._~:/?#@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})+")


def whole(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


VALUES = {
    "version": lambda value: value == "2.1.0",
    "columnKind": lambda value: value in ("utf16CodeUnits", "unicodeCodePoints"),
    "level": lambda value: value in ("none", "note", "warning", "error"),
    "text": lambda value: isinstance(value, str),
    # A placeholder would need arguments; links lead nowhere here.
    "message text": lambda value: isinstance(value, str) and not re.search(r"(?<!\{)\{\d+\}|(?<!\\)\[[^\[\]]*\]\(", value),
    "texts": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
    "any object": lambda value: isinstance(value, dict),
    "bool": lambda value: isinstance(value, bool),
    "uri": lambda value: isinstance(value, str) and URI.fullmatch(value) is not None,
    "from 0": lambda value: whole(value, 0),
    "from 1": lambda value: whole(value, 1),
}


def form(value, kind, path):
    if kind in VALUES:
        if not VALUES[kind](value):
            yield f"{path}: {value!r} is no {kind}"
        return
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no {kind}"
        return
    rules = {name.lstrip("!"): rule for name, rule in OBJECTS[kind].items()}
    for name in OBJECTS[kind]:
        if name.startswith("!") and name[1:] not in value:
            yield f"{path}: {kind} without {name[1:]}"
    for name, part in value.items():
        at = f"{path}.{name}"
        if name not in rules:
            yield f"{at}: no property of {kind}"
        elif not isinstance(rules[name], list):
            yield from form(part, rules[name], at)
        elif not isinstance(part, list):
            yield f"{at}: no array"
        else:
            if not part and (kind, name) in NOT_EMPTY:
                yield f"{at}: empty"
            if (kind, name) in DIFFERENT and any(part[i] in part[:i] for i in range(len(part))):
                yield f"{at}: an element twice"
            for i, each in enumerate(part):
                yield from form(each, rules[name][0], f"{at}[{i}]")


def references(run):
    ids = [rule["id"] for rule in run["tool"]["driver"].get("rules", [])]
    if len(set(ids)) != len(ids):
        yield "two rules have one id"
    for i, result in enumerate(run.get("results", [])):
        if result.get("ruleId") not in ids:
            yield f"results[{i}]: the rule {result.get('ruleId')!r} is not described"
        related = [each["id"] for each in result.get("relatedLocations", []) if "id" in each]
        if len(set(related)) != len(related):
            yield f"results[{i}]: two locations have one id"
        orders = [step["executionOrder"] for flow in result.get("codeFlows", []) for thread in flow["threadFlows"]
                  for step in thread["locations"] if "executionOrder" in step]
        if sorted(orders) != list(range(1, len(orders) + 1)):
            yield f"results[{i}]: the order of the steps is {orders}"


def faults(log):
    found = list(form(log, "sarifLog", "log"))
    return found or [each for run in log["runs"] for each in references(run)]


def changes(log):
    """Logs that differ from this one, which has a result with steps, in one thing that the standard forbids."""
    import copy

    def change(act):
        other = copy.deepcopy(log)
        act(other, next(each for each in other["runs"][0]["results"] if "codeFlows" in each))
        return other

    def flows(result):
        return result["codeFlows"][0]["threadFlows"]

    yield change(lambda log, result: log.update(version="2.0.0"))
    yield change(lambda log, result: log.pop("runs"))
    yield change(lambda log, result: log["runs"][0]["tool"].pop("driver"))
    yield change(lambda log, result: log["runs"][0].update(columnKind="bytes"))
    yield change(lambda log, result: log["runs"][0]["tool"]["driver"].update(rules=[]))
    yield change(lambda log, result: log["runs"][0]["tool"]["driver"]["rules"].append(log["runs"][0]["tool"]["driver"]["rules"][0]))
    yield change(lambda log, result: log["runs"][0]["invocations"][0].pop("executionSuccessful"))
    yield change(lambda log, result: result.pop("message"))
    yield change(lambda log, result: result.update(level="fatal"))
    yield change(lambda log, result: result.update(occurrenceCount=0))
    yield change(lambda log, result: result.update(severity="high"))
    yield change(lambda log, result: result.update(message={"text": "see {0}"}))
    yield change(lambda log, result: result.update(message={"text": "see [here](1)"}))
    yield change(lambda log, result: result["relatedLocations"][0].update(id=-2))
    yield change(lambda log, result: result["relatedLocations"].append(result["relatedLocations"][0]))
    yield change(lambda log, result: flows(result)[0].update(locations=[]))
    yield change(lambda log, result: flows(result)[0]["locations"][0].update(executionOrder=7000))
    yield change(lambda log, result: result.update(locations=[{"physicalLocation": {"artifactLocation": {"uri": "a b.c"}}}]))
    yield change(lambda log, result: result.update(locations=[{"physicalLocation": {"artifactLocation": {"uri": "a"}, "region": {"startLine": 0}}}]))
