// Package hostile is a table of requests that no honest client sends, and of honest ones in unusual forms, with the answer
// that Remit gives to each and what becomes of the connection. The tests of server send them to the service, those of
// interop send them through a proxy.
//
// Requests are written as they go over the wire. Four names in braces stand for what only a running service knows; see
// Credentials.
package hostile

import "strings"

// Fate is what becomes of the connection behind the answer.
type Fate int

const (
	Closed Fate = iota // nothing that was sent behind the request is read as a request
	Kept               // the next request is answered
	// Cut is for what the service waits for more of: the client ends its side, then it is refused and closed.
	Cut
)

// Request is one row.
type Request struct {
	Name   string
	Raw    string
	Status int // of the answer; there is exactly one, or NoAnswer
	Fate   Fate
	Code   string // of the problem, where the status alone does not say it
}

// NoAnswer stands for the status where the connection is closed without one: no request had arrived whole, and nobody
// waits for one.
const NoAnswer = 0

// Group is the rows of one kind.
type Group struct {
	Name     string
	Requests []Request
}

// Groups returns the whole table.
func Groups() []Group {
	return []Group{
		{"length", lengths}, {"transfer encoding", transferEncodings}, {"chunk", chunks}, {"trailer", trailers},
		{"request line", requestLines}, {"target", targets}, {"method", methods},
		{"header line", headerLines}, {"host", hosts}, {"given twice", repeats}, {"connection option", options},
		{"expect", expectations}, {"size", sizes}, {"other protocol", otherProtocols}, {"unusual but right", unusual},
	}
}

// Marker stands in whatever of a request is wrong. It comes back in no answer.
const Marker = "zqxj"

// Credentials are what stands for the names in braces. All are an honest tenant's: that a request is refused is never for
// want of one.
type Credentials struct {
	Key     string // {key}, the tenant's API key
	Access  string // {access}, an access token of its agent
	Session string // {session}, a session of that agent
	Agent   string // {agent}, the agent's id
}

// Fill returns the bytes to send.
func (c Credentials) Fill(raw string) string {
	return strings.NewReplacer("{key}", c.Key, "{access}", c.Access, "{session}", c.Session, "{agent}", c.Agent).Replace(raw)
}

const (
	host   = "Host: remit\r\n"
	key    = "X-API-Key: {key}\r\n"
	access = "Authorization: Bearer {access}\r\n"
	json   = "Content-Type: application/json\r\n"

	// Smuggled is a whole request to stand in another's body. It would be answered, and charge the session.
	Smuggled = "POST /sessions/{session}/actions HTTP/1.1\r\n" + host + key + "X-Request-Id: smuggled\r\n\r\n"
)

// charge is a charge of the session, from the first header of its own on.
func charge(rest string) string {
	return "POST /sessions/{session}/actions HTTP/1.1\r\n" + host + key + json + rest
}

// get asks for something that takes a credential, from the first header of its own on.
func get(rest string) string { return "GET /v1/agents HTTP/1.1\r\n" + host + rest }

// asked is a request with this request line.
func asked(line string) string { return line + "\r\n" + host + key + "\r\n" }

// chunked is a charge whose body is sent like this.
func chunked(body string) string { return charge("Transfer-Encoding: chunked\r\n\r\n" + body) }

// long returns a text of so many bytes.
func long(size int) string { return strings.Repeat(Marker, size/len(Marker)+1)[:size] }
