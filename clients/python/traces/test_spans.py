"""What arrives at a collector: a span of each request, and within it one of each physical call."""

SERVER, CLIENT = 2, 3
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
SECRET = "a-key-that-is-nobody-elses-business"
KEY = {"pk": {"S": SECRET}, "sk": {"S": SECRET}}
QUERY = {
    "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": SECRET}},
}


def requests(spans, operation):
    return [one for one in spans if one.kind == SERVER and one.name == operation]


def calls(spans, request):
    return [one for one in spans if one.kind == CLIENT and one.parent == request.id]


def test_a_request_has_a_span_and_each_of_its_calls_has_one_within(collector, gateway):
    sink = collector()
    server = gateway(sink.url + "/", OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test", **SOON)
    server.tables()
    assert server.call("PutItem", {"TableName": "Plain", "Item": KEY})[0] == 200
    assert server.call("PutItem", {"TableName": "Scores", "Item": KEY})[0] == 200
    assert server.call("Query", QUERY)[0] == 200
    # A key without its sort key, and a table that is not there.
    assert server.call("GetItem", {"TableName": "Scores", "Key": {"pk": {"S": SECRET}}})[0] == 400
    assert server.call("DeleteItem", {"TableName": "Absent", "Key": KEY})[0] == 400
    spans = sink.wait(lambda spans: len(requests(spans, "DeleteItem")) == 1)

    counts = {name: len(requests(spans, name)) for name in ["CreateTable", "PutItem", "Query", "GetItem", "DeleteItem"]}
    assert counts == {"CreateTable": 2, "PutItem": 2, "Query": 1, "GetItem": 1, "DeleteItem": 1}
    assert [one.attributes["heatsink.plan"] for one in requests(spans, "PutItem")] == ["forward", "single"]
    for put in requests(spans, "PutItem"):
        assert [one.name for one in calls(spans, put)] == ["PutItem"]
    [query] = requests(spans, "Query")
    assert (query.attributes["heatsink.plan"], query.failed) == ("scatter", False)
    assert [one.name for one in calls(spans, query)] == ["Query"] * 4
    for operation, code in [("GetItem", "ValidationException"), ("DeleteItem", "ResourceNotFoundException")]:
        [failed] = requests(spans, operation)
        assert (failed.attributes["error.type"], failed.failed) == (code, True)
    for one in spans:
        assert one.kind in (SERVER, CLIENT) and one.attributes["db.operation.name"] == one.name, one
        assert one.attributes["db.system.name"] == "aws.dynamodb"
        assert one.resource["service.name"] == "heatsink"
        assert one.resource["deployment.environment.name"] == "test"
        assert SECRET not in repr(one), one
        if one.kind == CLIENT:
            [request] = [other for other in spans if other.id == one.parent]
            assert (request.kind, request.trace) == (SERVER, one.trace)
        else:
            assert one.parent == b""
    assert len({one.trace for one in spans if one.kind == SERVER}) == len([one for one in spans if one.kind == SERVER])
    assert server.stop() == 0


def test_a_clients_own_trace_is_not_joined(collector, gateway):
    sink = collector()
    server = gateway(sink.url, **SOON)
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert server.call("ListTables", {}, traceparent=f"00-{trace}-b7ad6b7169203331-01")[0] == 200
    [request] = requests(sink.wait(lambda spans: requests(spans, "ListTables")), "ListTables")
    assert (request.trace.hex() != trace, request.parent) == (True, b"")


def test_a_share_of_the_requests_can_be_taken_whole(collector, gateway):
    sink = collector()
    server = gateway(sink.url, OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.25", **SOON)
    server.tables()
    for _ in range(400):
        assert server.call("Query", QUERY)[0] == 200
    assert server.stop() == 0
    taken = requests(sink.spans, "Query")
    # Five standard deviations.
    assert 57 <= len(taken) <= 143, len(taken)
    assert all(len(calls(sink.spans, one)) == 4 for one in taken)


def test_the_last_spans_are_sent_at_the_end(collector, gateway):
    sink = collector()
    server = gateway(sink.url, OTEL_BSP_SCHEDULE_DELAY="600000")
    server.tables()
    assert server.call("Query", QUERY)[0] == 200
    assert sink.spans == []
    assert server.stop() == 0
    assert not sink.faults
    [query] = requests(sink.spans, "Query")
    assert len(calls(sink.spans, query)) == 4
