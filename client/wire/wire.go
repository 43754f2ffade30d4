// Package wire knows what providers' requests and answers say: how much a call can use, and what it used; and how a call is sent once.
// It pays for nothing: metered.Transport does, and so does the gateway.
//
//	call, err := wire.Read(wire.Messages, body, table, wire.Options{})
//	if err != nil {
//		return err // it names the member at fault: wire.Member
//	}
//	hold, err := call.Worst()
//	…
//	meter := call.Meter(answer.Header)
//	for … {
//		passes := meter.Next(piece)
//		if meter.Ended() {
//			… // settle: the bytes that complete the answer are among passes, not before them
//		}
//		… // pass them on
//	}
//
// What cannot be bounded or priced is refused, and what an answer does not say for certain is not known.
package wire

import (
	"remit/client/prices"
	"remit/money"
)

// Format is an API by which models are called.
type Format interface {
	// maxima names the members of a request that bound its output; the first is the one to use. None: it has no output.
	maxima() []string
	// answers names the members of a request that say how many answers it gets.
	answers() []string
	// whole reads an answer that is not streamed, and reports whether its usage can be believed.
	whole(text []byte) (answered, bool)
	// event reads the data of one event of a stream.
	event(data []byte, p *progress)
}

// The formats that are known.
var (
	ChatCompletions Format = chat{}       // OpenAI's, and of all who copy it
	Responses       Format = responses{}  // OpenAI's
	Messages        Format = messages{}   // Anthropic's
	Embeddings      Format = embeddings{} // OpenAI's
)

// MaxBody bounds the bodies of requests, and of answers that are not streamed, in bytes.
const MaxBody = 64 << 20

// Call is a request for a completion or for embeddings.
type Call struct {
	Format Format
	Model  string // as sent
	Priced string // its name in the price table
	Body   []byte // to be sent: it asks for the usage

	Stream     bool
	HidesUsage bool // the caller did not ask for the usage of its stream, so the chunk that has it is taken out
	Asked      prices.Asked
	Reasons    bool  // it may have output that is counted and not sent
	Budget     int64 // the highest budget of thinking in the request; it is a part of the output. 0: none

	MostInput  int64  // tokens
	MostOutput int64  // tokens, of all answers
	Answers    int64  // that it gets
	LimitName  string // of the request's maximum of output, the highest, or of the one that it should have. Empty: it has no output
	IsLimited  bool   // the request has it

	// Objects names what the request refers to that lives at the provider: previous_response_id, file_id, an item or content of an
	// unknown type. Every caller behind the same key of the provider can read these.
	Objects []string
	// Hosted names tools that the provider runs, by their type or by the member that asks for them: web_search, mcp_servers. They
	// can cost something else than tokens.
	Hosted []string
	// HostedBy is the member of the request that asks for the first of them.
	HostedBy string

	table   *prices.Table
	options Options
	members map[string]rawMessage // of Body
}

// Options are how requests are read.
type Options struct {
	// Models maps names that requests and answers use to names in the table. A name that it does not have is looked up as it is.
	Models map[string]string
	// OutputLimit is the member by which the provider bounds the output of a chat completion, if it heeds only that one. A limit under
	// another name is sent under this one. Empty: max_completion_tokens where the request has none.
	OutputLimit string
	// AnswersModel prices a call by the model that its answer names, if the table has it: gateways and providers fall back to others.
	AnswersModel bool
	// PlainNames refuses a member whose name has more than a-z, 0-9 and _, - . or : in it. A server that ignores case, or that ends a name at
	// a NUL, would take N or n\u0000 for n.
	PlainNames bool
}

// Forget drops the text of the request, which is kept elsewhere or sent: an answer may take long. No Set or Fit may follow.
func (c *Call) Forget() { c.Body, c.members = nil, nil }

// Worst returns the most that the call can cost: its hold. Its error is *UnboundedCall.
func (c *Call) Worst() (money.MicroUSD, error) { return c.worst(c.MostOutput) }

func (c *Call) worst(output int64) (money.MicroUSD, error) {
	cost, err := c.table.WorstOf(c.Priced, c.Asked, c.MostInput, output)
	if err != nil { // it was found before: the amount is too large
		return 0, &UnboundedCall{c.Model, c.LimitName, "its output has no bound that can be priced"}
	}
	return cost, nil
}
