package prices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
)

// maxTable is the largest table that is read, in bytes: ten times LiteLLM's.
const maxTable = 16 << 20

// sample is the entry by which LiteLLM's table describes itself.
const sample = "sample_spec"

// ReadFile reads a table from a file. Its errors name the file, and wrap those of Parse and of reading.
func ReadFile(path string) (*Table, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTable+1))
	if err != nil {
		return nil, err
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads a table of at most 16 MiB. Its error is *InvalidPrices, for the first fault in the order of names.
//
// An entry without both an input and an output price per token is no model. Members that it does not know have no effect.
func Parse(text []byte) (*Table, error) {
	if len(text) > maxTable {
		return nil, &InvalidPrices{Reason: "must be at most 16 MiB"}
	}
	entries, err := object(text)
	if err != nil {
		return nil, &InvalidPrices{Reason: err.Error()}
	}
	t := &Table{models: make(map[string]*model, len(entries))}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if name == sample {
			continue
		}
		m, err := parseModel(entries[name])
		if err != nil {
			err.Model = name
			return nil, err
		}
		if m.input.base != nil && m.output.base != nil {
			t.models[name] = m
		}
	}
	return t, nil
}

func object(text []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(text, &members)
	var notAnObject *json.UnmarshalTypeError
	if errors.As(err, &notAnObject) || err == nil && members == nil {
		return nil, errors.New("must be an object")
	}
	if err != nil {
		return nil, fmt.Errorf("must be JSON: %w", err)
	}
	return members, nil
}

func parseModel(text []byte) (*model, *InvalidPrices) {
	members, err := object(text)
	if err != nil {
		return nil, &InvalidPrices{Reason: err.Error()}
	}
	m := new(model)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := m.set(name, members[name]); err != nil {
			return nil, &InvalidPrices{Member: name, Reason: err.Error()}
		}
	}
	m.limits = Limits{
		MaxInputTokens:  parseLimit(string(members["max_input_tokens"])),
		MaxOutputTokens: parseLimit(string(members["max_output_tokens"])),
	}
	if m.limits.MaxOutputTokens == 0 {
		m.limits.MaxOutputTokens = parseLimit(string(members["max_tokens"]))
	}
	return m, nil
}

// tier takes a member that applies to long prompts apart: the member, and the threshold in thousands of tokens.
var tier = regexp.MustCompile(`^([a-z_]+)_above_([1-9][0-9]{0,8})k_tokens$`)

// set reads a member of an entry if it is a price.
func (m *model) set(member string, value json.RawMessage) error {
	variants := tier.FindStringSubmatch(member)
	if variants != nil {
		member = variants[1]
	}
	p := m.priceOf(member)
	if p == nil || p == &m.reasoning && variants != nil || string(value) == "null" {
		return nil
	}
	text := string(value)
	if value[0] == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return errNotANumber
		}
	}
	cost, err := parseCost(text)
	if err != nil {
		return err
	}
	if variants == nil {
		p.base = cost
		return nil
	}
	thousands, err := strconv.ParseInt(variants[2], 10, 64)
	if err != nil {
		return err
	}
	if len(p.variants) == mostVariants {
		return errThresholds
	}
	p.add(variant{thousands * 1000, cost})
	return nil
}

// priceOf returns where the price of this name is kept, nil for other names.
func (m *model) priceOf(member string) *price {
	switch member {
	case "input_cost_per_token":
		return &m.input
	case "output_cost_per_token":
		return &m.output
	case "cache_read_input_token_cost":
		return &m.cacheRead
	case "cache_creation_input_token_cost":
		return &m.cacheCreation
	case "output_cost_per_reasoning_token":
		return &m.reasoning
	}
	return nil
}
