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
	var open []map[string]bool // of each object that is open its names; nil: an array
	isName := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open, isName = append(open, map[string]bool{}), true
		case '[':
			open, isName = append(open, nil), false
		case '}', ']':
			open, isName = open[:len(open)-1], false
		case ',':
			isName = open[len(open)-1] != nil
		case '"':
			written := text[i : i+quotedLength(text[i:])]
			i += len(written) - 1
			if !isName {
				continue
			}
			name, names := unquoted(written), open[len(open)-1]
			if names[name] {
				return name
			}
			names[name], isName = true, false
		}
	}
	return ""
}

// quotedLength returns the length of the string in JSON that opens a valid text, with its quotes.
func quotedLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func unquoted(written []byte) (text string) {
	if !bytes.ContainsRune(written, '\\') {
		return string(written[1 : len(written)-1])
	}
	_ = json.Unmarshal(written, &text) // it is valid
	return text
}

// Has reports whether the body to be sent has a member, be it null.
func (c *Call) Has(member string) bool { return c.members[member] != nil }

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
