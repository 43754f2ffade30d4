package hostile

// Bytes that reach a port by mistake or from scanners. Each ends as its client would leave it: with a
// line end, or waiting.
var otherProtocols = []Request{
	{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + long(500), 400, Closed, ""},
	{"SSH", "SSH-2.0-" + Marker + "\r\n", 400, Closed, ""},
	{"SMTP", "EHLO " + Marker + "\r\nMAIL FROM:<a@b>\r\n", 400, Closed, ""},
	{"Redis", "*2\r\n$3\r\nGET\r\n$4\r\n" + Marker + "\r\n", 400, Closed, ""},
	{"Redis, inline", "CONFIG SET dir /tmp/" + Marker + "\r\n", 400, Closed, ""},
	{"SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01" + Marker + "\x00", 400, Closed, ""},
	{"SOCKS5", "\x05\x01\x00", 400, Closed, ""},
	{"the PROXY protocol", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + Smuggled, 400, Closed, ""},
	{"the PROXY protocol, version 2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + Marker + Marker + Marker, 400, Closed, ""},
	{"FastCGI", "\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", 400, Closed, ""},
	{"PostgreSQL", "\x00\x00\x00\x08\x04\xd2\x16\x2f", 400, Closed, ""},
	{"SIP", "OPTIONS sip:" + Marker + " SIP/2.0\r\n\r\n", 400, Closed, ""},
	{"RTSP", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n", 400, Closed, ""},
	{"HTTP/2 frames", "\x00\x00\x12\x04\x00\x00\x00\x00\x00" + Marker, 400, Closed, ""},
	{"a response", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + Marker, 400, Closed, ""},
	{"bytes of no protocol", "\xff\xfe\xfd\xfc" + Marker, 400, Closed, ""},
	{"words", Marker + "\r\n\r\n", 400, Closed, ""},
}

// What a client may send, though few do. It must work.
var unusual = []Request{
	{"names in lower case", "GET /v1/agents HTTP/1.1\r\nhost: remit\r\nx-api-key: {key}\r\n\r\n", 200, Kept, ""},
	{"names in capitals", "GET /v1/agents HTTP/1.1\r\nHOST: remit\r\nX-API-KEY: {key}\r\n\r\n", 200, Kept, ""},
	{"no space behind the colon", "GET /v1/agents HTTP/1.1\r\nHost:remit\r\nX-API-Key:{key}\r\n\r\n", 200, Kept, ""},
	{"tabs and spaces around values", "GET /v1/agents HTTP/1.1\r\nHost: \t remit \t\r\nX-API-Key:\t{key} \t \r\n\r\n", 200, Kept, ""},
	{"tabs and spaces around a length", charge("Content-Length: \t 11 \t\r\n\r\n" + body), 200, Kept, ""},
	{"as Node's http sends it", "POST /sessions/{session}/actions HTTP/1.1\r\ncontent-type: application/json\r\nx-api-key: {key}\r\nHost: remit:8080\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunkedOK, 200, Kept, ""},
	{"in chunks of one byte", chunked("1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"), 200, Kept, ""},
	{"a chunked body of nothing", "POST /v1/agents/{agent}/resume HTTP/1.1\r\n" + host + key + json + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, Kept, ""},
	{"a charset", "POST /sessions/{session}/actions HTTP/1.1\r\n" + host + key + "Content-Type: Application/JSON; charset=\"utf-8\"\r\nContent-Length: 11\r\n\r\n" + body, 200, Kept, ""},
	{"HTTP/1.0 with a body", "POST /sessions/{session}/actions HTTP/1.0\r\n" + key + json + "Content-Length: 11\r\n\r\n" + body, 200, Closed, ""},
	{"the scheme in another case", "GET /sessions HTTP/1.1\r\n" + host + "Authorization: bEARER {access}\r\n\r\n", 200, Kept, ""},
	{"an absolute form in capitals", asked("GET HTTP://REMIT:8080/v1/agents?limit=1 HTTP/1.1"), 200, Kept, ""},
	{"an encoded query", asked("GET /v1/agents?%6cimit=%31 HTTP/1.1"), 200, Kept, ""},
	{"an empty query", asked("GET /v1/agents? HTTP/1.1"), 200, Kept, ""},
	{"TE", get(key + "TE: trailers, deflate\r\n\r\n"), 200, Kept, ""},
	{"a body of a DELETE", "DELETE /v1/agents/00000000-0000-7000-8000-000000000000 HTTP/1.1\r\n" + host + key + json + "Content-Length: 2\r\n\r\n{}", 404, Kept, ""},
	{"a HEAD", "HEAD /v1/agents HTTP/1.1\r\n" + host + key + "\r\n", 200, Kept, ""},
}
