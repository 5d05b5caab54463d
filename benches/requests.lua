-- wrk script: posts the bodies of a file (one per line) in turn. Arguments: operation, file, and where a server checks
-- signatures a file with date and authorization of each body, parted by a tab.
-- Prints one JSON line at the end; a wrong status or a socket error shows in "errors".

local requests, at = {}, 0

function init(args)
  local headers = {
    ["Content-Type"] = "application/x-amz-json-1.0",
    ["X-Amz-Target"] = "DynamoDB_20120810." .. args[1],
    ["X-Amz-Date"] = "20260101T000000Z",
    ["Authorization"] = "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
      .. "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" .. string.rep("0", 64),
  }
  local signed = args[3] and io.lines(args[3])
  for body in io.lines(args[2]) do
    if signed then
      headers["X-Amz-Date"], headers["Authorization"] = signed():match("(.-)\t(.*)")
    end
    requests[#requests + 1] = wrk.format("POST", "/", headers, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"errors":%d,"p50_ms":%.4f,"p99_ms":%.4f}\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
