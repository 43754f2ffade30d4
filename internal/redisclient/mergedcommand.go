package redisclient

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// mergedScript is the variant of a script that runs several calls of it; see Script.MergeAs.
type mergedScript struct {
	source, sha     []byte
	keys, arguments int // of each call
}

// MergeAs gives a script a variant for several calls, which each have so many keys and arguments. The variant's KEYS are the
// first call's, then the second's and so on; so are its ARGV. It answers an array with what the script would have answered to
// each, or {'!', error} where it would have failed. Without keys it does nothing. Call it only while the process starts.
func (s *Script) MergeAs(source string, keys, arguments int) *Script {
	sum := sha1.Sum([]byte(source))
	s.merged = &mergedScript{[]byte(source), []byte(hex.EncodeToString(sum[:])), keys, arguments}
	return s
}

// MergedSHA returns the SHA-1 in hex of the script's variant for several calls, "" if it has none.
func (s *Script) MergedSHA() string {
	if s.merged == nil {
		return ""
	}
	return string(s.merged.sha)
}

// fits says whether a call can share a command with others of its script.
func (m *mergedScript) fits(call *Command) bool {
	keys, _ := call.words[countWord].(int)
	return keys == m.keys && len(call.words) == firstKeyWord+m.keys+m.arguments
}

// callError is the error of one call among several that went as one command.
type callError string

func (e callError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (e callError) RedisError() {}

const failedCall = "!" // the code of a call that has an error in place of a reply

// errWrongCount is for an answer that no merged script gives. What the calls wrote is unknown.
var errWrongCount = fmt.Errorf("%w: not one for each call", ErrReply)

// mergedCommand is calls of one script that go as one command.
type mergedCommand struct {
	script *mergedScript
	calls  []*Command
	own    []unretriedCmd // the calls' own commands, which are not sent and get the answers
	source bool           // Redis does not know the script
	words  []any
	sent   unretriedCmd
}

// String names the script, and does not count as writing it.
func (m *mergedCommand) String() string { return string(m.script.sha) }

// MarshalBinary implements encoding.BinaryMarshaler. It is the word that names the script; see scriptWord.
func (m *mergedCommand) MarshalBinary() ([]byte, error) {
	for _, call := range m.calls {
		call.script.written.Store(true)
	}
	if m.source {
		return m.script.source, nil
	}
	return m.script.sha, nil
}

// put puts the command together, in words that are those of its calls.
func (m *mergedCommand) put() {
	verb := "evalsha"
	if m.source {
		verb = "eval"
	}
	arguments := firstKeyWord + m.script.keys
	m.words = append(m.words[:0], verb, m, len(m.calls)*m.script.keys)
	for _, call := range m.calls {
		m.words = append(m.words, call.words[firstKeyWord:arguments]...)
	}
	for _, call := range m.calls {
		m.words = append(m.words, call.words[arguments:]...)
	}
	m.sent = unretriedCmd{redis.NewCmd(context.Background(), m.words...)}
}

// spread gives each call its answer. Failed is the error of the pipeline.
func (m *mergedCommand) spread(failed error) {
	m.sent.explain(failed)
	answers, _ := m.sent.Val().([]any)
	err := m.sent.Err()
	if m.sent.Val() != nil && len(answers) != len(m.calls) {
		answers, err = nil, errWrongCount
	}
	for i, own := range m.own {
		if answers == nil {
			own.SetErr(err)
		} else if err := errorIn(answers[i]); err != nil {
			own.SetErr(err)
		} else {
			own.SetVal(answers[i])
		}
	}
}

func errorIn(answer any) error {
	if values, _ := answer.([]any); len(values) == 2 && values[0] == failedCall {
		text, _ := values[1].(string)
		return callError(text)
	}
	return nil
}

// didNotRun says whether the command did not run as a whole, for a reason that its calls by themselves need not have.
func (m *mergedCommand) didNotRun() bool {
	err := m.sent.Err()
	return m.sent.Val() == nil && (m.unknown() || moving(err) || redis.HasErrorPrefix(err, "CROSSSLOT"))
}

// unknown says whether Redis did not know the script.
func (m *mergedCommand) unknown() bool { return redis.HasErrorPrefix(m.sent.Err(), "NOSCRIPT") }

func (m *mergedCommand) clear() {
	clear(m.calls)
	clear(m.own)
	clear(m.words)
	*m = mergedCommand{calls: m.calls[:0], own: m.own[:0], words: m.words[:0]}
}
