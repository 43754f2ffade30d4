package gateway

import (
	"bytes"
	"slices"
	"strings"
)

// leastMasked is the length of a key that is masked. Shorter ones are placeholders, for servers that need none.
const leastMasked = 16

// mask hides the provider's key in an answer that comes in pieces: some servers quote the key that they refuse.
type mask struct {
	key  []byte // empty: nothing is hidden
	rest []byte // of what came: it may begin the key
}

func newMask(key string) mask {
	if len(key) < leastMasked {
		return mask{}
	}
	return mask{key: []byte(key)}
}

func (m *mask) isIn(text string) bool { return len(m.key) > 0 && strings.Contains(text, string(m.key)) }

// next returns what may pass. A key becomes as many asterisks, so that the answer keeps its length.
func (m *mask) next(text []byte) (passes []byte) {
	if len(m.key) == 0 {
		return text
	}
	text = bytes.ReplaceAll(append(m.rest, text...), m.key, bytes.Repeat([]byte("*"), len(m.key)))
	begun := min(len(m.key)-1, len(text))
	for !bytes.HasSuffix(text, m.key[:begun]) {
		begun--
	}
	m.rest = slices.Clone(text[len(text)-begun:])
	return text[:len(text)-begun]
}
