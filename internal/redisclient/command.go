package redisclient

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Command is the call of a script, in words as go-redis takes them. Words point into the command itself: made one by one, the
// words of a usual call are two dozen allocations, here they are one, with room for what most scripts take.
type Command struct {
	words   []any // verb, script, how many keys, keys, arguments
	script  scriptWord
	texts   []string
	chunks  []chunk
	bytes   []byte
	keyWord int // where the first key stands
	flow    Flow
	bounds  bounds
	sent    redis.Cmd // as go-redis takes it

	confirm bool          // it counts only once it is replicated
	merged  *mergedScript // by which it may share a command; nil for none
	unknown bool          // Redis did not know that script

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

// Joined is several texts that make one argument, with a space between.
type Joined [3]string

func (j Joined) appendTo(bytes []byte) []byte {
	bytes = append(append(bytes, j[0]...), ' ')
	bytes = append(append(bytes, j[1]...), ' ')
	return append(bytes, j[2]...)
}

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

// String names the script, and does not count as writing it.
func (w *scriptWord) String() string { return string(w.bytes) }

// MarshalBinary implements encoding.BinaryMarshaler.
func (w *scriptWord) MarshalBinary() ([]byte, error) {
	w.written.Store(true)
	return w.bytes, nil
}

// NewCommand begins the call of a script that has so many keys. Add the keys and then the arguments, in their order.
func NewCommand(f Flow, keys int) *Command { return new(Command).begin(f, keys) }

func (c *Command) begin(f Flow, keys int) *Command {
	c.flow, c.keyWord = f, firstKeyWord
	c.words, c.texts, c.chunks, c.bytes = c.room.words[:firstKeyWord], c.room.texts[:0], c.room.chunks[:0], c.room.bytes[:0]
	c.words[namingWord], c.words[countWord] = &c.script, keys
	return c
}

// usedCommands are commands whose calls have ended. With a new one for each call, most of what a request allocates would be
// its command.
var usedCommands = sync.Pool{New: func() any { return new(Command) }}

// recycle hands the command back for another call, which must be the last use of it. Do not recycle one whose call failed: a
// pipeline that its caller has left may still read it.
func (c *Command) recycle() {
	c.forget()
	usedCommands.Put(c)
}

// forget drops what the command points to, and what it did. Its bytes stay until they are written over.
func (c *Command) forget() {
	clear(c.room.words[:])
	clear(c.room.texts[:])
	c.words, c.texts, c.chunks, c.bytes = nil, nil, nil, nil
	c.script.bytes, c.bounds, c.sent, c.merged, c.confirm, c.unknown = nil, bounds{}, redis.Cmd{}, nil, false, false
}

// of makes it a call of this script: by its name, or with its source.
func (c *Command) of(ctx context.Context, sc *Script, withSource bool) unretriedCmd {
	c.script.written.Store(false)
	if withSource {
		c.words[verbWord], c.script.bytes, c.merged = "eval", sc.source, nil
	} else {
		c.words[verbWord], c.script.bytes, c.merged = "evalsha", sc.sha, sc.merged
	}
	c.unknown = false
	c.sent = *redis.NewCmd(ctx, c.words...) // which allocates nothing, because it is inlined
	return unretriedCmd{&c.sent}
}

// classify is classify for the error of a call: what was never written leaves nothing in doubt.
func (c *Command) classify(err error, a Access) error {
	if !c.script.written.Load() && !errors.Is(err, errLeftInFlight) {
		a = Reads
	}
	return classify(err, a)
}

// firstKey is the key that says which server runs the script.
func (c *Command) firstKey() string { return c.texts[0] }

// keyOf returns the first key of a command that was made here.
func keyOf(cmd unretriedCmd) string {
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
func (c *Command) showKey() { c.words[c.keyWord] = c.texts[0] }

// newPlainCommand is a command of Redis itself, with one key.
func newPlainCommand(f Flow, verb, key string, args ...string) *Command {
	c := &Command{flow: f, keyWord: plainKeyWord}
	c.words, c.texts = append(c.room.words[:0], verb), c.room.texts[:0]
	c.Keys(key)
	c.Keys(args...)
	return c
}

// Keys adds keys.
func (c *Command) Keys(keys ...string) {
	for _, key := range keys {
		c.text(key)
	}
}

// Arguments adds arguments, each a string, []byte, uuid.UUID, [32]byte, int, int64, uint32 or Joined. It panics for any other
// type.
func (c *Command) Arguments(args ...any) {
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
		case Joined: // a concrete type: calling a method of an interface would move all arguments to the heap
			c.end(arg.appendTo(c.bytes))
		default:
			panic("a script is given an argument of an unknown type") // formatting the type would move all arguments to the heap
		}
	}
}

func (c *Command) text(text string) {
	c.texts = append(c.texts, text)
	c.words = append(c.words, &c.texts[len(c.texts)-1])
}

// end makes a word of what was appended to the bytes. What stood in them before stays where it is, also when they move.
func (c *Command) end(bytes []byte) {
	c.chunks = append(c.chunks, bytes[len(c.bytes):])
	c.words = append(c.words, &c.chunks[len(c.chunks)-1])
	c.bytes = bytes
}

// unretriedCmd is a command that go-redis never sends a second time after its reply was lost.
type unretriedCmd struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (unretriedCmd) NoRetry() bool { return true }

// explain gives a command that has neither an answer nor an error the error of its pipeline. go-redis leaves it without one
// when Redis refused a new connection with an answer (WRONGPASS).
func (c unretriedCmd) explain(pipeline error) {
	if pipeline != nil && c.Err() == nil && c.Val() == nil {
		c.SetErr(pipeline)
	}
}

// note sets the reason why a write was not confirmed, if the command was answered.
func (c unretriedCmd) note(unconfirmed error) {
	if answered(c.Val()) && unconfirmed != nil {
		c.SetErr(unconfirmed)
	}
}

// failure returns why there is no answer; see answer.
func (c unretriedCmd) failure() error {
	if c.Val() != nil {
		return nil
	}
	return c.Err()
}

// answer returns what Redis answered to a command that was sent, and the error of sending it. When a pipeline breaks, go-redis
// gives its error to all its commands, also to those that were answered before it broke. A command that no replica has
// confirmed has both an answer and an error.
func (c unretriedCmd) answer(sending error) (any, error) {
	if sending != nil && !isUnconfirmed(sending) {
		return nil, sending
	}
	if answered(c.Val()) {
		if isUnconfirmed(c.Err()) {
			return c.Val(), c.Err()
		}
		return c.Val(), nil
	}
	return c.Slice()
}
