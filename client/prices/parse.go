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
		if standard := &m.tiers[standardTier]; standard[input].base != nil && standard[output].base != nil {
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
	m.reasons = string(members["supports_reasoning"]) == "true" || m.tiers[standardTier][reasoning].base != nil
	return m, nil
}

// variantName takes a member apart that has a price for long prompts or for a service tier: the price, the tier, the threshold in
// thousands of tokens, the tier. LiteLLM writes the tier before the threshold or after it.
var variantName = regexp.MustCompile(`^([a-z_]+?(?:_above_1hr)?)(?:_(priority|flex))?(?:_above_([1-9][0-9]{0,8})k_tokens)?(?:_(priority|flex))?$`)

// set reads a member of an entry if it is a price.
func (m *model) set(member string, value json.RawMessage) error {
	parts := variantName.FindStringSubmatch(member)
	if parts == nil || string(value) == "null" || parts[2] != "" && parts[4] != "" {
		return nil
	}
	kind, thousands := slices.Index(kindNames[:], parts[1]), parts[3]
	if kind < 0 || kind == reasoning && thousands != "" {
		return nil
	}
	p := &m.tiers[tierNames[parts[2]+parts[4]]][kind] // "": the standard tier
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
	if thousands == "" {
		p.base = cost
		return nil
	}
	above, err := strconv.ParseInt(thousands, 10, 64)
	if err != nil {
		return err
	}
	if len(p.variants) == mostVariants {
		return errThresholds
	}
	p.add(variant{above * 1000, cost})
	return nil
}
