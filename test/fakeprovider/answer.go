package fakeprovider

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
)

// format is how a path answers.
type format interface {
	answer(call, generated) answer
	problem(status int, text string) any
}

var formats = map[string]format{chatPath: chat{}, responsesPath: responses{}, messagesPath: messages{}}

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

// grouped joins the texts of one to three tokens each, as far as they go.
func grouped(tokens []string) (texts []string, counts []int64) {
	for i := 0; i < len(tokens); {
		size := min(1+i%3, len(tokens)-i)
		text := ""
		for _, token := range tokens[i : i+size] {
			text += token
		}
		texts, counts = append(texts, text), append(counts, int64(size))
		i += size
	}
	return texts, counts
}

func joined(tokens []string) (text string) {
	for _, token := range tokens {
		text += token
	}
	return text
}

// arguments are those of a tool call: JSON whose only text is that of the tokens.
func arguments(tokens []string) string { return `{"query":` + quoted(joined(tokens)) + `}` }
