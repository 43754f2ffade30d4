package redisstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// command is the call of a script, in words as go-redis takes them. Words point into the command itself: made one by one,
// the words of a charge are two dozen allocations, here they are one, with room for what most scripts are given.
type command struct {
	words   []any // verb, script, how many keys, keys, arguments
	script  scriptWord
	texts   []string
	chunks  []chunk
	bytes   []byte
	keyWord int // where the first key stands
	flow    flow
	bounds  bounds
	reply   reply

	confirm bool // it counts only once it is replicated

	room struct {
		words  [24]any
		texts  [16]string
		chunks [8]chunk
		bytes  [192]byte
	}
}

const (
	verbWord = iota
	namingWord
	countWord
	firstKeyWord

	plainKeyWord = 1 // of a command that is no script's call
)

// chunk is a word that was written into the command's bytes.
type chunk []byte

// MarshalBinary implements encoding.BinaryMarshaler, by which go-redis takes a word without a copy of its own.
func (b *chunk) MarshalBinary() ([]byte, error) { return *b, nil }

// scriptWord is the word that names a script, or is its source. go-redis asks for its bytes when it writes the command to a
// connection, and never before: a command that was not written has not run, whatever has gone wrong.
type scriptWord struct {
	bytes   []byte
	written atomic.Bool // read by a caller that has left a pipeline, which may be writing
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (w *scriptWord) MarshalBinary() ([]byte, error) {
	w.written.Store(true)
	return w.bytes, nil
}

// newCommand begins a command of a flow that has so many keys; keys and arguments are added in their order.
func newCommand(f flow, keys int) *command {
	c := &command{flow: f, keyWord: firstKeyWord}
	c.words, c.texts, c.chunks, c.bytes = c.room.words[:firstKeyWord], c.room.texts[:0], c.room.chunks[:0], c.room.bytes[:0]
	c.words[namingWord], c.words[countWord] = &c.script, keys
	return c
}

// of makes it a call of this script: by its name, or with its source.
func (c *command) of(ctx context.Context, sc *script, withSource bool) onceCmd {
	c.script.written.Store(false)
	if withSource {
		c.words[verbWord], c.script.bytes = "eval", sc.source
	} else {
		c.words[verbWord], c.script.bytes = "evalsha", sc.name
	}
	return onceCmd{redis.NewCmd(ctx, c.words...)}
}

// classify is classify for the error of a call: what was never written leaves nothing in doubt.
func (c *command) classify(err error, a access) error {
	if !c.script.written.Load() && !errors.Is(err, errAboard) {
		a = reads
	}
	return classify(err, a)
}

// firstKey is the key that says which server runs the script.
func (c *command) firstKey() string { return c.texts[0] }

// keyOf returns the first key of a command that was made here.
func keyOf(cmd onceCmd) string {
	words := cmd.Args()
	for _, place := range []int{plainKeyWord, firstKeyWord} { // in the first of a script's call is none
		if place < len(words) {
			switch key := words[place].(type) {
			case *string:
				return *key
			case string:
				return key
			}
		}
	}
	return ""
}

// showKey lets go-redis read the first key, from which a cluster client finds the server.
func (c *command) showKey() { c.words[c.keyWord] = c.texts[0] }

// newPlainCommand is a command of Redis itself, with one key.
func newPlainCommand(f flow, verb, key string, args ...string) *command {
	c := &command{flow: f, keyWord: plainKeyWord}
	c.words, c.texts = append(c.room.words[:0], verb), c.room.texts[:0]
	c.keys(key)
	c.keys(args...)
	return c
}

func (c *command) keys(keys ...string) {
	for _, key := range keys {
		c.text(key)
	}
}

// arguments adds what scripts are given: text, numbers, bytes, and what is noted in the audit trail.
func (c *command) arguments(args ...any) {
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			c.text(arg)
		case []byte:
			c.end(append(c.bytes, arg...))
		case uuid.UUID:
			c.end(append(c.bytes, arg[:]...))
		case [sha256.Size]byte:
			c.end(append(c.bytes, arg[:]...))
		case int64:
			c.end(strconv.AppendInt(c.bytes, arg, 10))
		case int:
			c.end(strconv.AppendInt(c.bytes, int64(arg), 10))
		case uint32:
			c.end(strconv.AppendInt(c.bytes, int64(arg), 10))
		case auditNote:
			c.end(arg.append(c.bytes))
		default:
			panic("a script is given what no word is made of") // its type is not named: args would have to outlive the call
		}
	}
}

func (c *command) text(text string) {
	c.texts = append(c.texts, text)
	c.words = append(c.words, &c.texts[len(c.texts)-1])
}

// end makes a word of what was appended to the bytes. What stood in them before stays where it is, also when they move.
func (c *command) end(bytes []byte) {
	c.chunks = append(c.chunks, bytes[len(c.bytes):])
	c.words = append(c.words, &c.chunks[len(c.chunks)-1])
	c.bytes = bytes
}
