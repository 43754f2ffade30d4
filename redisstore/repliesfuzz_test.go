package redisstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// fakeRedis is a server that speaks Redis's protocol and sends given replies.
type fakeRedis struct {
	mu      sync.Mutex
	replies []string // next replies; the last one repeats
	again   int      // how often the last one was repeated
}

// maxAgain bounds how often a reply makes an operation repeat its command.
const maxAgain = 30

// startFakeRedis starts a fakeRedis, and a store on it.
func startFakeRedis(tb testing.TB) (*fakeRedis, *Store) {
	tb.Helper()
	m := &fakeRedis{}
	store, err := Open(Config{URL: "redis://" + redistest.Serve(tb, m.serve)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return m, store
}

// serve ends with the connection.
func (m *fakeRedis) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		reply := "-ERR unknown command\r\n"
		if !strings.EqualFold(words[0], "hello") && !strings.EqualFold(words[0], "client") { // the handshake of go-redis
			reply = m.next()
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func (m *fakeRedis) next() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.replies[0]
	switch {
	case len(m.replies) > 1:
		m.replies = m.replies[1:]
	case m.again == maxAgain:
		return "-ERR no more\r\n"
	default:
		m.again++
	}
	return reply
}

func (m *fakeRedis) answer(replies []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies, m.again = replies, 0
}

// resp encodes a reply in Redis's protocol: a JSON string as a bulk string whose bytes are its characters, numbers as
// integers, null and arrays as such, {"error": ...} as an error, true and false as a status.
func resp(value any) string {
	switch value := value.(type) {
	case string:
		var raw []byte
		for _, r := range value {
			raw = append(raw, byte(r))
		}
		return "$" + strconv.Itoa(len(raw)) + "\r\n" + string(raw) + "\r\n"
	case json.Number:
		return ":" + string(value) + "\r\n"
	case []any:
		text := "*" + strconv.Itoa(len(value)) + "\r\n"
		for _, element := range value {
			text += resp(element)
		}
		return text
	case map[string]any:
		text, _ := value["error"].(string)
		return "-" + strings.NewReplacer("\r", " ", "\n", " ").Replace(text) + "\r\n"
	case bool:
		return "+" + strconv.FormatBool(value) + "\r\n"
	}
	return "$-1\r\n"
}

var fuzzedOrganization, fuzzedAgent, fuzzedObject = uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1"),
	uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f2"), uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f2")

// fuzzedCalls are all operations that read a reply.
func fuzzedCalls(ctx context.Context, s *Store) []call {
	o := fuzzedObject
	g := Grant{AccessToken: AccessToken{Organization: fuzzedOrganization, Agent: fuzzedAgent, Family: o}}
	w := tenant{key: APIKey{Organization: fuzzedOrganization}, agent: Agent{ID: fuzzedAgent}, session: Session{ID: o}}
	of := target{fuzzedAgent, o, o, o, o, o, o, o, o, o, o}
	return slices.Concat(callsByKey(ctx, s, w.key, of), callsByEither(ctx, s, w.byKey(), of), callsByEither(ctx, s, byToken(g), of),
		furtherByKey(ctx, s, w), withKeys(ctx, s, w, g, of), ofTokens(ctx, s, w, g, of), []call{
			{"ReadSuspensions", nil, func() (any, error) { return nil, s.ReadSuspensions(ctx) }},
			{"OrganizationUse", nil, func() (any, error) { return s.OrganizationUse(ctx, fuzzedOrganization) }},
			{"Organizations", nil, func() (any, error) { return s.Organizations(ctx) }},
			{"BootstrapHash", nil, func() (any, error) { return firstOf(s.BootstrapHash(ctx)) }},
			{"CheckSecret", nil, func() (any, error) { return s.CheckSecret(ctx, fuzzedAgent, [32]byte{}) }},
			{"CheckToken", nil, func() (any, error) { return nil, s.CheckToken(ctx, g.AccessToken) }},
			{"CheckRefresh", nil, func() (any, error) { return firstOf(s.CheckRefresh(ctx, fuzzedAgent, o, 1)) }},
			{"Commit for a value", nil, func() (any, error) { return s.Commit(ctx, g.AccessToken, o, Commit{Value: new(money.USD)}) }},
			{"Keys", nil, func() (any, error) { return firstOf(s.Keys(ctx, SigningKeys)) }},
			{"RotateKey", nil, func() (any, error) { return s.RotateKey(ctx, SigningKeys, "id", "key", 0, 0) }},
			{"RetireKey", nil, func() (any, error) { return nil, s.RetireKey(ctx, SigningKeys, "id") }},
			{"KeepIssuer", nil, func() (any, error) { return s.KeepIssuer(ctx, "issuer") }},
			{"Ready", nil, func() (any, error) { return s.Ready(ctx) }},
			{"ReadNewest", nil, func() (any, error) { s.ReadNewest([]string{s.keys.Events(fuzzedAgent)}); return nil, nil }},
		})
}

// malformedReplies are replies that Redis never sends, or not to these operations.
func malformedReplies() []string {
	sixteen := `"` + strings.Repeat("a", 14) + `\u00c3\u00f2"`
	return []string{
		`[["ok"]]`, `[[]]`, `[null]`, `["ok"]`, `[1]`, `[{"error":"ERR no"}]`, `[{"error":"NOSCRIPT no"},["ok","1"]]`, `[true]`, `[["once"]]`, `[["no_such_code"]]`,
		`[["ok","1700000000000"]]`, `[["ok",` + sixteen + `,"read write","1700000000000"]]`, `[["ok",{"error":"ERR inside"}]]`, `[["holds_due"],["ok"],["ok"]]`,
		`[["limit","max_actions","1","2","3","4","5","6"]]`, `[["limit","max_actions","1"]]`, `[["not_active","1","","2","3"]]`, `[["not_pending","1","","2"]]`, `[["scope_not_held"]]`,
		`[["ok","1","2","3","-4","-5","6"]]`, `[["ok","1","2","3","4","5","6"]]`, `[["ok","9223372036854775807","9223372036854775807","9223372036854775807","4","5","9223372036854775807"]]`,
		`[["ok","4294967296",` + sixteen + `,"read"]]`, `[["ok","-1",` + sixteen + `,"read"]]`, `[["ok","0",` + sixteen + `,"read"]]`,
		`[["ok","request","",["ok","1","2","3","4","5","6"]]]`, `[["outcome","request","1",["limit","max_actions","1","2","3","4","5","6"]]]`, `[["ok","request","1",[]]]`,
		`[["ok","1700000000000","","read",[` + sixteen + `,"1","2","3","4",null,"1700000000000",null,"5",null,null,null]]]`,
		`[["ok","1700000000000","","read",[` + sixteen + `,"1","2","3","4"]]]`, `[["ok","1700000000000","","read",[]]]`,
		`[["ok"],"short"]`, `[["ok"],[]]`, `[["ok"],[null]]`, `[["ok"],[` + sixteen + `]]`, `[[` + sixteen + `]]`, `[[` + sixteen + `,null,null,"pay","5"]]`,
		`[[` + sixteen + `,null,null,"pay",null,null,"1700000000000",null,"{}"],["ok","1700000000000","","1700000000000",["pending"]]]`,
		`[[` + sixteen + `,null,null,"pay",null,null,"1700000000000",null,"{}"],["ok","1700000000000","gone","1700000000000",["committed","1","-1","1","",""]]]`,
		`[["ok","1700000000000",[` + sixteen + `]],[` + sixteen + `],["` + strings.Repeat("b", 16) + `"]]`, `[["ok","1700000000000",["short"]]]`,
		`[["ok","1700000000000",[` + sixteen + `],[` + sixteen + `]],[null],[null]]`, `[["ok",[["1-0",["type","x","at"]]]]]`, `[["ok",[["1-0",["type","x","at","1","held","-5"]]]]]`,
		`[["ok",[["1-0"],["2-0",[]],["3-0",[]]]]]`, `[["id","not a record"],["1700000000","1"]]`, `[["id"],["1"]]`, `[[["1-0",["a"]]]]`, `[[["1-0",["a","b"]]]]`,
	}
}

// FuzzReplies gives operations replies that Redis never sends.
func FuzzReplies(f *testing.F) {
	server, store := startFakeRedis(f)
	for i, replies := range malformedReplies() {
		f.Add(uint8(i), []byte(replies))
	}
	f.Fuzz(func(t *testing.T, operation uint8, replies []byte) {
		calls := fuzzedCalls(t.Context(), store)
		requireSafe(t, server, calls[int(operation)%len(calls)], replies)
	})
}

func TestOperationsRejectMalformedReplies(t *testing.T) {
	t.Parallel()
	server, store := startFakeRedis(t)
	for _, operation := range fuzzedCalls(t.Context(), store) {
		for _, replies := range malformedReplies() {
			requireSafe(t, server, operation, []byte(replies))
		}
	}
}

// requireSafe checks that an operation returns a known error or a value that the API can write, and does not panic.
func requireSafe(t *testing.T, server *fakeRedis, of call, replies []byte) {
	t.Helper()
	var values []any
	decoder := json.NewDecoder(strings.NewReader(string(replies)))
	decoder.UseNumber()
	if decoder.Decode(&values) != nil || len(values) == 0 {
		return
	}
	var texts []string
	for _, value := range values {
		texts = append(texts, resp(value))
	}
	server.answer(texts)
	got, err := of.do()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s: %s: %v, though every command was answered", of.name, replies, err)
	case err != nil && !isKnownError(err):
		t.Errorf("%s: %s: %v is no error of the store", of.name, replies, err)
	case err == nil:
		requireWritable(t, reflect.ValueOf(got))
	}
}

// isKnownError says whether callers can identify the error.
func isKnownError(err error) bool {
	for _, one := range []error{
		errReply, kernel.ErrHoldsDue, ErrUnavailable, ErrOutcomeUnknown, ErrInvalidAPIKey, ErrInvalidToken, ErrInvalidCredentials, ErrInvalidRefreshToken,
		ErrTokenReused, ErrUnknownAgent, ErrUnknownSession, ErrUnknownTransaction, ErrIdempotencyKeyReused, ErrAgentRevoked, kernel.ErrUnknownKey, ErrKeyInUse, ErrNotReversible,
		ErrUnknownOrganization, ErrBeingDeleted, ErrOrganizationSuspended, ErrUnknownDelivery, ErrUnknownIssuer,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return slices.ContainsFunc([]any{
		new(*NotActiveError), new(*ScopeError), new(*LimitError), new(*BelowUsageError), new(*NotPendingError), new(*PendingKeyError),
	}, func(kind any) bool { return errors.As(err, kind) })
}

// requireWritable checks a value: no amount or count is negative, RFC 3339 can write every time, and generations begin with
// 1.
func requireWritable(t *testing.T, value reflect.Value) {
	t.Helper()
	switch kind := value.Kind(); {
	case !value.IsValid():
	case value.Type() == reflect.TypeFor[time.Time]():
		if at := value.Interface().(time.Time); at.Year() < 0 || at.Year() > 9999 {
			t.Errorf("a time in the year %d", at.Year())
		}
	case value.CanInt():
		if value.Int() < 0 {
			t.Errorf("a %s of %d", value.Type(), value.Int())
		}
	case value.CanUint():
		if value.Uint() == 0 {
			t.Errorf("a %s of 0", value.Type())
		}
	case kind == reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				requireWritable(t, value.Field(i))
			}
		}
	case kind == reflect.Slice:
		for i := range value.Len() {
			requireWritable(t, value.Index(i))
		}
	case kind == reflect.Map:
		for _, name := range value.MapKeys() {
			requireWritable(t, value.MapIndex(name))
		}
	case kind == reflect.Pointer || kind == reflect.Interface:
		requireWritable(t, value.Elem())
	}
}
