// Package hostile is a table of requests that no honest client sends, and of honest ones in unusual forms, with the response
// of Remit to each and the fate of the connection. The tests of server send them to the service, and the tests of interop
// send them through a proxy.
//
// Requests are written as they go over the wire. Four names in braces are placeholders for credentials and ids of a running
// service; see Credentials.
package hostile

import "strings"

// Fate is what happens to the connection after the response.
type Fate int

const (
	Closed Fate = iota // nothing sent after the request is read as a request
	Kept               // the next request is answered
	// Cut is for an incomplete request: the client ends its side, then the service refuses the request and closes.
	Cut
)

// Request is one row.
type Request struct {
	Name   string
	Raw    string
	Status int // of the only response, or NoAnswer
	Fate   Fate
	Code   string // of the problem, where the status alone does not say it
}

// NoAnswer is the status of a connection that is closed without a response, because no complete request arrived.
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

// Marker is in the faulty part of each request. No response contains it.
const Marker = "zqxj"

// Credentials replace the names in braces. All belong to an honest tenant, so no request is refused for a missing one.
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

// long returns a text of this size, in bytes.
func long(size int) string { return strings.Repeat(Marker, size/len(Marker)+1)[:size] }
