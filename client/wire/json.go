package wire

import (
	"bytes"
	"encoding/json"
	"io"
)

type rawMessage = json.RawMessage

// members are those of a JSON object. Numbers are exact texts.
type members = map[string]any

// readMembers reads an object: its members, and their texts.
func readMembers(text []byte) (request members, raw map[string]rawMessage, is bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&request) != nil || request == nil {
		return nil, nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil, false
	}
	return request, raw, json.Unmarshal(text, &raw) == nil
}

// duplicate returns a name that an object in a valid JSON text has twice, at any depth. Servers differ in which of the two they take.
// Empty: there is none.
func duplicate(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var names []map[string]bool // of each object that is open; nil: an array is
	isName := false
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		switch token {
		case json.Delim('{'):
			names, isName = append(names, map[string]bool{}), true
			continue
		case json.Delim('['):
			names = append(names, nil)
		case json.Delim('}'), json.Delim(']'):
			names = names[:len(names)-1]
		}
		if name, isText := token.(string); isName && isText {
			seen := names[len(names)-1]
			if seen[name] {
				return name
			}
			seen[name], isName = true, false
			continue
		}
		isName = len(names) > 0 && names[len(names)-1] != nil
	}
}

// Set sets a member of the body to be sent.
func (c *Call) Set(member string, value any) error {
	text, err := marshal(value)
	if err != nil {
		return err
	}
	c.members[member] = text
	return c.write()
}

func (c *Call) write() (err error) {
	c.Body, err = marshal(c.members)
	return err
}

// marshal keeps <, > and & as they are.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimRight(text.Bytes(), "\n"), err
}
