package fakeprovider

import (
	"slices"
	"strings"
)

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"

	embeddingsPath = "/v1/embeddings"
)

// format is how a path answers.
type format interface {
	answer(call, generated) answer
	problem(status int, text string) any
}

var formats = map[string]format{chatPath: chat{}, responsesPath: responses{}, messagesPath: messages{}, embeddingsPath: embeddings{}}

// object is a JSON object.
type object map[string]any

// answer is all that a call can be answered with.
type answer struct {
	whole  any     // not streamed
	events []event // streamed
	broken event   // ends a stream that fails
	usage  Usage
}

// event is an event of a stream.
type event struct {
	name   string // empty: none
	data   any    // a string is sent as it is
	tokens int64  // of output that it carries
}

// piece is what an event adds to a text or to the arguments of a tool call.
type piece struct {
	text   string
	tokens int64
}

// pieces are those of a choice, of one to three tokens each. With tools they add up to arguments.
func (c call) pieces(tokens []string) (pieces []piece) {
	for i := 0; i < len(tokens); {
		size := min(1+i%3, len(tokens)-i)
		text := joined(tokens[i : i+size])
		if c.fake.tools && c.tool.arguments == "" {
			escaped := quoted(text)
			text = escaped[1 : len(escaped)-1]
		}
		pieces = append(pieces, piece{text, int64(size)})
		i += size
	}
	if c.fake.tools && c.tool.arguments == "" {
		return slices.Concat([]piece{{text: `{"query":"`}}, pieces, []piece{{text: `"}`}})
	}
	return pieces
}

func joined(tokens []string) string { return strings.Join(tokens, "") }

// arguments are those of a tool call: the given ones, which the tokens make up, or JSON whose only text is that of the tokens.
func (c call) arguments(tokens []string) string {
	if c.tool.arguments != "" {
		return c.tool.arguments
	}
	return `{"query":` + quoted(joined(tokens)) + `}`
}
