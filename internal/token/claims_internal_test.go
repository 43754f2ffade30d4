package token

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"remit/test/suite"
)

func TestClaimsAreWrittenAsTheEncoderWouldWriteThem(t *testing.T) {
	t.Parallel()
	full := claims{
		Issuer: "https://remit.example/\"<é>\u2028", Subject: uuid.New(), ID: uuid.New(), Agent: uuid.New(), Organization: uuid.New(),
		Family: uuid.New(), Scopes: []string{"read", "tools:<a>&'b'", "\\\"\n"}, Issued: 1_732_185_600, Expires: 1 << 52,
	}
	bound, delegated := full, full
	bound.Client, bound.Audience, bound.Confirmation = uuid.New(), Audience{"https://a.example/\"<é>"}, confirmation{"\"<é>"}
	delegated.Client, delegated.Audience, delegated.Session = uuid.New(), Audience{"urn:<a>", "", "\u2028"}, uuid.New()
	delegated.Actor, delegated.Families = &actor{uuid.New(), &actor{Subject: uuid.New()}}, []uuid.UUID{uuid.New(), uuid.New()}
	for name, c := range map[string]claims{
		"none": {}, "no scopes": {Scopes: []string{}}, "no audience": full, "bound": bound, "delegated": delegated,
	} {
		want := must(json.Marshal(c))(t)
		if got, err := c.append(nil); string(got) != string(want) || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	for name, c := range map[string]claims{"issuer": {Issuer: "\xff"}, "scope": {Scopes: []string{"\xff", "read"}},
		"audience": {Audience: Audience{"\xff"}}, "second audience": {Audience: Audience{"a", "\xff"}}, "key": {Confirmation: confirmation{"\xff"}}} {
		if got, err := c.append(nil); err == nil {
			t.Errorf("an invalid %s is written as %q", name, got)
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }
