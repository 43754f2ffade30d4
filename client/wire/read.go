package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"

	"remit/client/prices"
)

// toolPrompt is more than the tokens of the prompt that a provider puts before a request with tools: Anthropic's has a few
// hundred, by its pages on tool use.
const toolPrompt = 1000

// Read reads a request and bounds its tokens. Its errors are *UnboundedCall, *UsageMissing and *prices.UnknownModel; Member says which
// member of the request is at fault.
func Read(f Format, body []byte, table *prices.Table, o Options) (*Call, error) {
	request, raw, err := readRequest(body, o.PlainNames)
	if err != nil {
		return nil, err
	}
	model, isText := cmp.Or[any](request["model"], "").(string)
	if !isText {
		return nil, &UnboundedCall{Member: "model", Reason: "its model is no text in JSON"}
	}
	if table == nil {
		return nil, errors.New("wire: there is no price table")
	}
	c := &Call{Format: f, Model: model, Priced: o.priced(model), Body: body, table: table, options: o, members: raw}
	limits, err := table.Limits(c.Priced)
	if err != nil {
		return nil, err
	}
	if err := c.readPrices(request); err != nil {
		return nil, err
	}
	c.Reasons, c.Budget = canReason(request, table.Reasons(c.Priced)), thinkingBudget(request)
	if err := c.bound(request, limits); err != nil {
		return nil, err
	}
	return c, c.askForUsage(request)
}

// readRequest reads a request: its members, and their texts. Its error is *UnboundedCall.
func readRequest(body []byte, plainNames bool) (request members, raw map[string]rawMessage, err error) {
	if len(body) > MaxBody {
		return nil, nil, &UnboundedCall{Reason: "its body has more than 64 MiB"}
	}
	request, raw, is := readMembers(body)
	if !is {
		return nil, nil, &UnboundedCall{Reason: "its body is no request in JSON"}
	}
	if name := duplicate(body); name != "" {
		return nil, nil, &UnboundedCall{Member: name, Reason: "its body has " + name + " twice, of which a server may take either"}
	}
	for name := range raw {
		if plainNames && !plainName.MatchString(name) {
			return nil, nil, &UnboundedCall{Member: name, Reason: "it has a member that servers may take for another: " + strconv.Quote(name)}
		}
	}
	return request, raw, nil
}

var plainName = regexp.MustCompile(`^[a-z0-9_.:-]+$`)

// Objects names what a request refers to that lives at the provider, as Call.Objects does, where the request costs nothing: one that
// only counts tokens. Its error is *UnboundedCall.
func Objects(f Format, body []byte) ([]string, error) {
	request, _, err := readRequest(body, true)
	if err != nil {
		return nil, err
	}
	c := &Call{Format: f}
	c.readElsewhere(request)
	return c.Objects, nil
}

// priced returns a model's name in the price table.
func (o *Options) priced(model string) string {
	if name, has := o.Models[model]; has {
		return name
	}
	return model
}

// readPrices reads what decides at which prices the request is served.
func (c *Call) readPrices(request members) error {
	stream, isBool := request["stream"].(bool)
	if !isBool && request["stream"] != nil {
		return c.unbounded("stream", "stream must be true or false in JSON")
	}
	c.Stream = stream
	if member, reason := c.unpriced(request); reason != "" {
		return c.unbounded(member, reason)
	}
	if reason := c.readTier(request); reason != "" {
		return c.unbounded("service_tier", reason)
	}
	return nil
}

func (c *Call) unbounded(member, reason string) error { return &UnboundedCall{c.Model, member, reason} }

// bound sets the most tokens that the call can have.
func (c *Call) bound(request members, limits prices.Limits) error {
	c.MostInput = int64(len(c.Body)) - c.escapes(request) // a token is at least a byte
	if tools, _ := request["tools"].([]any); len(tools) > 0 {
		c.MostInput += toolPrompt
	}
	_, hasMany := c.Format.(embeddings) // texts in one request, each of which may have max_input_tokens
	if limits.MaxInputTokens > 0 && !hasMany {
		c.MostInput = min(c.MostInput, limits.MaxInputTokens)
	}
	if member := c.readElsewhere(request); member != "" {
		if c.MostInput = limits.MaxInputTokens; c.MostInput == 0 {
			return c.unbounded(member, "it refers to content elsewhere: give the model max_input_tokens in the price table")
		}
	}
	return c.boundOutput(request, limits)
}

func (c *Call) boundOutput(request members, limits prices.Limits) error {
	maxima, limitName := c.Format.maxima(), c.options.OutputLimit
	n, of, err := c.highest(request, c.Format.answers())
	if err != nil || maxima == nil {
		c.Answers = 1
		return err
	}
	most, name, err := c.highest(request, maxima)
	if err != nil {
		return err
	}
	c.Answers, c.LimitName, c.IsLimited = max(n, 1), cmp.Or(name, limitName, maxima[0]), name != ""
	most = cmp.Or(most, limits.MaxOutputTokens)
	if most == 0 {
		return c.unbounded(c.LimitName, "set "+c.LimitName+" in the request, or max_output_tokens in the price table")
	}
	if most > prices.MaxTokens/c.Answers {
		return c.unbounded(cmp.Or(of, c.LimitName), "its output has no bound that can be priced")
	}
	c.MostOutput = most * c.Answers
	if limitName != "" && c.IsLimited {
		return c.moveLimit(limitName, most)
	}
	return nil
}

// highest returns the highest of counts in the request, because servers differ in which one they heed, and its name. 0: there is none.
func (c *Call) highest(request members, names []string) (most int64, of string, err error) {
	for _, name := range names {
		if request[name] == nil {
			continue
		}
		n, is := wholeNumber(request[name])
		if !is || n < 1 {
			return 0, "", c.unbounded(name, name+" must be a JSON integer from 1")
		}
		if n > most {
			most, of = n, name
		}
	}
	return most, of, nil
}

// wholeNumber reads an integer as TypeScript does: 1e3 and 1000.0 are some.
func wholeNumber(value any) (n int64, is bool) {
	number, _ := value.(json.Number)
	f, err := number.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > prices.MaxTokens {
		return 0, false
	}
	return int64(f), true
}

// askForUsage has a stream of chat completions report its usage, which it does only when asked.
func (c *Call) askForUsage(request members) error {
	if _, isChat := c.Format.(chat); !isChat || !c.Stream {
		return nil
	}
	var options map[string]rawMessage
	if text := c.members["stream_options"]; text != nil && json.Unmarshal(text, &options) != nil {
		return c.unbounded("stream_options", "stream_options must be an object in JSON")
	}
	switch include := string(options["include_usage"]); include {
	case "true":
		return nil
	case "", "null":
	default:
		return &UsageMissing{c.Model, "stream_options.include_usage is " + include + ", so it was not sent"}
	}
	if options == nil {
		options = map[string]rawMessage{}
	}
	options["include_usage"] = rawMessage("true")
	c.HidesUsage = true
	return c.Set("stream_options", options)
}
