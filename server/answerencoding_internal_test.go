package server

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"remit/internal/event"
	"remit/internal/token"
	"remit/server/budgets"
	"remit/server/identity"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// hostile has what encoders treat differently: quotes, control characters, HTML, the line ends of JavaScript, characters
// beyond the BMP, and one that stands for invalid UTF-8.
const hostile = "\"\\/\b\f\n\r\t\x00\x1f\x7f<b>&'\u00e9\u2028\u2029\uFFFD\U0001F600"

// hostileObject is metadata as an early version may have stored it: with white space, escapes and numbers of every form.
const hostileObject = "{ \"a\" : [ 1, 2.50, -0, 1e400, 9007199254740993, \"<\\u00e9\u00e9\\u2028\u2028\\/\\ud83d\\ude00>\" ] ,\n" +
	"\"\" : null, \"n\" : { \"n\" : { \"n\" : [ [ ] , { } ] } } , \"\\u0061\\u0000\" : true }"

var update = flag.Bool("update", false, "write testdata/answers.txt anew")

// namedAnswer is a body that the encoder writes.
type namedAnswer struct {
	name  string
	value any
}

// answersOfEveryType has each type of body that the encoder writes: with nothing in it, with all that it may hold, and a list of both.
func answersOfEveryType() (all []namedAnswer) {
	for _, nothing := range []any{
		web.Problem{}, budgets.SessionAnswer{}, budgets.SessionSummary{}, budgets.EndedAnswer{}, budgets.ChargeAnswer{}, budgets.BatchResult{},
		budgets.TransactionAnswer{}, budgets.DryTransaction{}, budgets.LeaseAnswer{}, budgets.SettlementAnswer{}, budgets.SessionRequestAnswer{},
		identity.AgentAnswer{}, identity.RevokedAgentAnswer{}, identity.RotatedSecretAnswer{}, identity.OrganizationAnswer{},
		identity.RotatedKeyAnswer{}, identity.FamilyAnswer{}, event.Event{}, healthAnswer{}, access.Introspection{}, access.TokenPair{},
		access.RevokedTokenAnswer{}, access.OAuthGrant{}, access.OAuthErrorAnswer{}, access.ServerMetadata{}, access.ResourceMetadata{},
	} {
		kind := reflect.TypeOf(nothing)
		list := reflect.MakeSlice(reflect.SliceOf(kind), 2, 2)
		fill(list.Index(0), 0)
		all = append(all, namedAnswer{kind.String(), list.Index(0).Interface()}, namedAnswer{"no " + kind.String(), nothing},
			namedAnswer{"list of " + kind.String(), list.Interface()})
	}
	return append(all, namedAnswer{"one audience", access.Introspection{Audience: token.Audience{hostile}}}, namedAnswer{"no list", []event.Event(nil)})
}

// fill sets everything in a value that can be set: texts to what encoders treat differently, numbers to odd ones.
func fill(v reflect.Value, depth int) {
	at := time.Date(2026, 2, 28, 23, 59, 59, 7e6, time.FixedZone("", 3600))
	switch {
	case !v.CanSet() || depth > 8: // an actor has an actor
	case v.Type() == reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte(hostileObject))
	case reflect.TypeOf(at).ConvertibleTo(v.Type()):
		v.Set(reflect.ValueOf(at).Convert(v.Type()))
	case v.Kind() == reflect.String:
		v.SetString(hostile)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(12_300_001)
	case v.CanUint():
		v.SetUint(201)
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(web.NewProblem(404, "not_found", hostile)))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		fill(v.Index(1), depth+1)
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	}
}

// The file was written by the encoder that the service had first: go-json-experiment/json. It reads the requests still, so
// the bodies are also held to what it writes today. For another field: go test ./server -run KeepsItsBytes -update.
func TestEveryTypeOfAnswerKeepsItsBytes(t *testing.T) {
	t.Parallel()
	answers, now := answersOfEveryType(), ""
	for _, a := range answers {
		first := must(strict.Marshal(a.value))(t)
		now += a.name + "\t" + string(first) + "\n"
		if got, err := web.Encode(a.value); !bytes.Equal(got, first) || err != nil {
			t.Errorf("%s: %s, %v, want %s", a.name, got, err, first)
		}
	}
	const file = "testdata/answers.txt"
	if *update {
		must(0, os.WriteFile(file, []byte(now), 0o600))(t)
	}
	wantEqual(t, file, string(must(os.ReadFile(file))(t)), now)
}

// An encoder that prepares each type at its first use must do so for many callers at once.
func TestManyCallersEncodeATypeForTheFirstTime(t *testing.T) {
	t.Parallel()
	values := []any{
		firstUse[web.Problem](), firstUse[[]budgets.SessionAnswer](), firstUse[*identity.AgentAnswer](), firstUse[[2]event.Event](),
		firstUse[*[]budgets.TransactionAnswer](), firstUse[identity.OrganizationAnswer](),
	}
	begin := make(chan struct{})
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			<-begin
			for _, value := range values {
				want, err := strict.Marshal(value)
				if got, failed := web.Encode(value); !bytes.Equal(got, want) || failed != nil || err != nil {
					t.Errorf("%s, %v, want %s, %v", got, failed, want, err)
				}
			}
		})
	}
	close(begin)
	callers.Wait()
}

// once is a type that nothing else encodes.
type once[T any] struct{ Own T }

func firstUse[T any]() any {
	var value once[T]
	fill(reflect.ValueOf(&value).Elem(), 0)
	return value
}

// What cannot be written as JSON is an error, and no half of a body.
func FuzzAnswersKeepTheirBytes(f *testing.F) {
	for text, object := range map[string]string{
		hostile: hostileObject, "\xff": `{"a":"\ud800"}`, "": `{"a":1,"\u0061":2}`,
		"a\xffb": "{\"a\":\"\xff\"}", "\xe2\x80": `{"a":`, "\xed\xa0\x80": `{}{}`,
	} {
		f.Add(text, []byte(object))
	}
	f.Fuzz(func(t *testing.T, text string, object []byte) {
		for _, value := range []any{
			identity.AgentAnswer{Name: text, Scopes: []string{text, text}, Metadata: object},
			[]budgets.BatchResult{{Status: 400, Body: web.Problem{Detail: text, Errors: []web.FieldError{{Field: text, Message: text}}}}},
			budgets.TransactionAnswer{ActionType: text, PreState: object, PostState: object},
		} {
			want, refused := strict.Marshal(value)
			got, err := web.Encode(value)
			if (err == nil) != (refused == nil) || err == nil && !bytes.Equal(got, want) || err != nil && got != nil {
				t.Errorf("%q, %q: %s, %v, want %s, %v", text, object, got, err, want, refused)
			}
			if err == nil && !utf8.ValidString(text) {
				t.Errorf("%q is written as %s", text, got)
			}
		}
	})
}
