package token_test

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remit/internal/token"
)

func thumbprintOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return encode(string(sum[:]))
}

// forIssuer is an access token of the form of RFC 9068 for the issuer itself.
func forIssuer() token.Access {
	a := bearer()
	a.Audience, a.Client = []string{issuer}, a.Agent
	return a
}

// delegated is a token of a token exchange, with this many actors.
func delegated(actors int) token.Access {
	a := forIssuer()
	a.Session, a.Lifetime = uuid.New(), 20*time.Minute
	for range actors {
		a.Actors = append(a.Actors, token.Actor{Agent: uuid.New(), Family: uuid.New()})
	}
	a.Client = a.Actors[0].Agent
	return a
}

func with(a token.Access, change func(*token.Access)) token.Access {
	a.Audience, a.Actors = slices.Clone(a.Audience), slices.Clone(a.Actors)
	change(&a)
	return a
}

func TestAnAccessTokenNamesItsAudienceItsClientAndItsKey(t *testing.T) {
	t.Parallel()
	id := func(id uuid.UUID) string { return `"` + id.String() + `"` }
	one, chain := delegated(1), delegated(3)
	for name, row := range map[string]struct {
		access token.Access
		want   map[string]string // beside those of a token of the version before
	}{
		"of the version before": {bearer(), nil},
		"for the issuer":        {forIssuer(), map[string]string{"aud": `"` + issuer + `"`}},
		"for one resource": {
			with(forIssuer(), func(a *token.Access) { a.Audience = []string{"https://mcp.example/"} }),
			map[string]string{"aud": `"https://mcp.example/"`},
		},
		"for two": {
			with(forIssuer(), func(a *token.Access) { a.Audience = []string{issuer, "urn:mail"} }),
			map[string]string{"aud": `["` + issuer + `","urn:mail"]`},
		},
		"bound": {
			with(forIssuer(), func(a *token.Access) { a.Thumbprint = thumbprintOf("a key") }),
			map[string]string{"aud": `"` + issuer + `"`, "cnf": `{"jkt":"` + thumbprintOf("a key") + `"}`},
		},
		"delegated": {one, map[string]string{
			"aud": `"` + issuer + `"`, "act": `{"sub":` + id(one.Actors[0].Agent) + `}`, "session_id": id(one.Session),
			"act_fam": `[` + id(one.Actors[0].Family) + `]`,
		}},
		"delegated along a chain, bound, an hour long": {
			with(chain, func(a *token.Access) { a.Lifetime, a.Thumbprint = 0, thumbprintOf("a key") }),
			map[string]string{
				"aud": `"` + issuer + `"`, "cnf": `{"jkt":"` + thumbprintOf("a key") + `"}`, "session_id": id(chain.Session),
				"act": `{"sub":` + id(chain.Actors[0].Agent) + `,"act":{"sub":` + id(chain.Actors[1].Agent) +
					`,"act":{"sub":` + id(chain.Actors[2].Agent) + `}}}`,
				"act_fam": `[` + id(chain.Actors[0].Family) + `,` + id(chain.Actors[1].Family) + `,` + id(chain.Actors[2].Family) + `]`,
			},
		},
	} {
		if row.want != nil {
			row.want["client_id"] = id(row.access.Client)
		}
		for _, s := range signers() {
			ring := newKeyring(t, s)
			text := signAccess(t, ring, row.access)
			requireSays(t, ring, text, noon, row.access)
			got := map[string]string{}
			for name, value := range payloadOf(t, text) {
				if !slices.Contains([]string{"iss", "sub", "jti", "agent_id", "org_id", "fam", "scopes", "iat", "exp"}, name) {
					got[name] = string(value)
				}
			}
			if len(got)+len(row.want) > 0 && !reflect.DeepEqual(got, row.want) {
				t.Errorf("%s, %s: claims %v; want %v", name, s.name, got, row.want)
			}
		}
	}
}

func TestADelegatedTokenExpiresWhenItSays(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	for _, lasts := range []time.Duration{time.Second, 20 * time.Minute, time.Hour - time.Second} {
		a := delegated(1)
		a.Lifetime = lasts
		text := signAccess(t, ring, a)
		requireSays(t, ring, text, noon.Add(lasts-1), a)
		requireRefused(t, ring, "at its end", text, noon.Add(lasts), token.ErrExpired)
		if !a.Expires().Equal(noon.Add(lasts)) {
			t.Errorf("it expires at %s; want %s later than %s", a.Expires(), lasts, noon)
		}
	}
}

func TestTheLongestScopesAndAudiencesFitIntoAToken(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring, err := token.NewKeyring("https://"+strings.Repeat("i", 92), parsed(s), []*token.RefreshKey{refreshKey(t, 0)})
		if err != nil {
			t.Fatal(err)
		}
		a := longest(forIssuer())
		requireSays(t, ring, signAccess(t, ring, a), noon, a)
	}
	ring, chain := newKeyring(t, rfc8037()), delegated(token.MaxActors)
	requireSays(t, ring, signAccess(t, ring, chain), noon, chain)
}

func TestOnlyFieldsThatBelongTogetherAreSigned(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	for name, a := range map[string]token.Access{
		"a client without an audience":      with(bearer(), func(a *token.Access) { a.Client = a.Agent }),
		"an audience without a client":      with(forIssuer(), func(a *token.Access) { a.Client = uuid.Nil }),
		"another client":                    with(forIssuer(), func(a *token.Access) { a.Client = uuid.New() }),
		"an empty audience":                 with(forIssuer(), func(a *token.Access) { a.Audience = []string{issuer, ""} }),
		"a key without an audience":         with(bearer(), func(a *token.Access) { a.Thumbprint = thumbprintOf("a key") }),
		"half a thumbprint":                 with(forIssuer(), func(a *token.Access) { a.Thumbprint = thumbprintOf("a key")[:42] }),
		"a padded thumbprint":               with(forIssuer(), func(a *token.Access) { a.Thumbprint = thumbprintOf("a key")[:42] + "=" }),
		"a shorter life":                    with(forIssuer(), func(a *token.Access) { a.Lifetime = time.Minute }),
		"a longer life":                     with(delegated(1), func(a *token.Access) { a.Lifetime = time.Hour + time.Second }),
		"a whole life in other words":       with(delegated(1), func(a *token.Access) { a.Lifetime = time.Hour }),
		"no life":                           with(delegated(1), func(a *token.Access) { a.Lifetime = -time.Second }),
		"half a second":                     with(delegated(1), func(a *token.Access) { a.Lifetime = 1500 * time.Millisecond }),
		"a session without an actor":        with(forIssuer(), func(a *token.Access) { a.Session = uuid.New() }),
		"an actor without a session":        with(delegated(1), func(a *token.Access) { a.Session, a.Lifetime = uuid.Nil, 0 }),
		"an actor that is nobody":           with(delegated(2), func(a *token.Access) { a.Actors[1].Agent = uuid.Nil }),
		"an actor of no family":             with(delegated(2), func(a *token.Access) { a.Actors[1].Family = uuid.Nil }),
		"another client than the actor":     with(delegated(2), func(a *token.Access) { a.Client = a.Actors[1].Agent }),
		"more actors than trees are deep":   delegated(token.MaxActors + 1),
		"a delegation without any audience": with(delegated(1), func(a *token.Access) { a.Audience, a.Client = nil, uuid.Nil }),
	} {
		if text, err := ring.SignAccess(a); !errors.Is(err, token.ErrClaims) || text != "" {
			t.Errorf("%s: SignAccess = %q, %v; want ErrClaims", name, text, err)
		}
	}
}

// newClaims are the claims of a token of the form of RFC 9068.
func newClaims() claimSet {
	good := goodClaims()
	return slices.Insert(slices.Clone(good), 7, claim{"client_id", good[1].value}, claim{"aud", `"` + issuer + `"`})
}

func TestVerifyAccessRefusesNewClaimsThatItDoesNotIssue(t *testing.T) {
	t.Parallel()
	s := rfc8037()
	ring, good := newKeyring(t, s), newClaims()
	said := said()
	said.Audience, said.Client = []string{issuer}, said.Agent
	requireSays(t, ring, s.issue(t, good.String()), noon, said)
	const another, none = `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70b"`, `"00000000-0000-0000-0000-000000000000"`
	insert := func(at int, more ...claim) claimSet { return slices.Insert(slices.Clone(good), at, more...) }
	jkt := `"` + thumbprintOf("a key") + `"`
	act := func(value string, families ...string) claimSet {
		return insert(9, claim{"act", value}, claim{"act_fam", "[" + strings.Join(families, ",") + "]"}, claim{"session_id", another})
	}
	delegation := act(`{"sub":`+another+`}`, another).with("client_id", another)
	deep := strings.Repeat(`{"sub":`+another+`,"act":`, token.MaxActors) + `{"sub":` + another + `}` + strings.Repeat("}", token.MaxActors)
	for name, payload := range map[string]claimSet{
		"aud alone":             good.without("client_id"),
		"client_id alone":       good.without("aud"),
		"aud first":             append(claimSet{good[8]}, good.without("aud")...),
		"aud empty":             good.with("aud", `""`),
		"aud null":              good.with("aud", "null"),
		"aud no list":           good.with("aud", "[]"),
		"aud a list of one":     good.with("aud", `["`+issuer+`"]`),
		"aud a list with ''":    good.with("aud", `["`+issuer+`",""]`),
		"aud a list of numbers": good.with("aud", "[1,2]"),
		"aud an object":         good.with("aud", "{}"),
		"aud a number":          good.with("aud", "1"),
		"aud not UTF-8":         good.with("aud", "\"\xff\""),
		"aud escaped":           good.with("aud", `"https:\/\/remit.example"`),
		"client_id null":        good.with("client_id", "null"),
		"client_id of nobody":   good.with("client_id", none),
		"client_id of another":  good.with("client_id", another),
		"client_id in capitals": good.with("client_id", strings.ToUpper(good[1].value)),
		"cnf null":              insert(9, claim{"cnf", "null"}),
		"cnf empty":             insert(9, claim{"cnf", "{}"}),
		"jkt empty":             insert(9, claim{"cnf", `{"jkt":""}`}),
		"jkt short":             insert(9, claim{"cnf", `{"jkt":"AAAA"}`}),
		"jkt and more":          insert(9, claim{"cnf", `{"jkt":` + jkt + `,"x5t#S256":` + jkt + `}`}),
		"jkt twice":             insert(9, claim{"cnf", `{"jkt":` + jkt + `,"jkt":` + jkt + `}`}),
		"cnf at the end":        good.and("cnf", `{"jkt":`+jkt+`}`),
		"cnf in the old form":   goodClaims().and("cnf", `{"jkt":`+jkt+`}`),
		"act null":              act("null", another),
		"act empty":             act("{}", another),
		"act of the subject":    act(`{"sub":`+good[1].value+`,"act":null}`, another),
		"act of nobody":         act(`{"sub":`+none+`}`, another),
		"act of another client": act(`{"sub":`+another+`}`, another),
		"act a text":            act(another, another),
		"act too deep":          act(deep, slices.Repeat([]string{another}, token.MaxActors+1)...).with("client_id", another),
		"no act_fam":            delegation.without("act_fam"),
		"act_fam empty":         delegation.with("act_fam", "[]"),
		"act_fam null":          delegation.with("act_fam", "null"),
		"act_fam of nobody":     delegation.with("act_fam", "["+none+"]"),
		"act_fam of more":       delegation.with("act_fam", "["+another+","+another+"]"),
		"act_fam alone":         insert(9, claim{"act_fam", "[" + another + "]"}),
		"act without a session": insert(9, claim{"act", `{"sub":` + another + `}`}).with("client_id", another),
		"session_id alone":      insert(9, claim{"session_id", another}),
		"session_id of nobody":  insert(9, claim{"session_id", none}),
		"a short life":          good.with("exp", good[9].value),
	} {
		requireRefused(t, ring, name, s.issue(t, payload.String()), noon, token.ErrClaims)
	}
	if _, err := ring.VerifyAccess(s.issue(t, delegation.String()), noon); err != nil {
		t.Errorf("a delegated token: %v", err)
	}
	for name, exp := range map[string]string{"of no life": "iat", "ended before it began": "0", "too long": "9999999999"} {
		if exp == "iat" {
			exp = delegation[delegation.index("iat")].value
		}
		requireRefused(t, ring, name, s.issue(t, delegation.with("exp", exp).String()), noon, token.ErrClaims)
	}
}

func TestATokenIsForItsAudienceAndAnOlderOneForTheIssuer(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	both := with(forIssuer(), func(a *token.Access) { a.Audience = []string{"urn:mail", issuer} })
	mail := with(forIssuer(), func(a *token.Access) { a.Audience = []string{"urn:mail"} })
	for _, row := range []struct {
		name     string
		access   token.Access
		audience string
		want     bool
	}{
		{"the version before", bearer(), issuer, true},
		{"the version before", bearer(), "urn:mail", false},
		{"the version before", bearer(), "", false},
		{"for the issuer", forIssuer(), issuer, true},
		{"for the issuer", forIssuer(), issuer + "/", false},
		{"for both", both, issuer, true},
		{"for both", both, "urn:mail", true},
		{"for mail", mail, "urn:mail", true},
		{"for mail", mail, issuer, false},
		{"for mail", mail, "urn:MAIL", false},
	} {
		if got := ring.IsFor(row.access, row.audience); got != row.want {
			t.Errorf("%s: is for %q: %t", row.name, row.audience, got)
		}
	}
	if got := ring.AudienceOf(bearer()); !slices.Equal(got, []string{issuer}) {
		t.Errorf("the audience of the version before: %q", got)
	}
	if got := ring.AudienceOf(mail); !slices.Equal(got, mail.Audience) {
		t.Errorf("the audience %q; want %q", got, mail.Audience)
	}
}

func TestTokensForTheIssuerNameItFromTheTimeThatTheKeyringIsGiven(t *testing.T) {
	t.Parallel()
	before := newKeyring(t, rfc8037())
	ring := before.NamingAudiencesFrom(noon.Add(time.Hour))
	if ring.Equal(before) || !ring.Equal(before.NamingAudiencesFrom(noon.Add(time.Hour))) {
		t.Error("keyrings are equal when they name audiences from another time on, or are not when from the same")
	}
	for name, row := range map[string]struct {
		access token.Access
		old    bool
	}{
		"for the issuer":        {forIssuer(), true},
		"for another":           {with(forIssuer(), func(a *token.Access) { a.Audience = []string{"urn:mail"} }), false},
		"for both":              {with(forIssuer(), func(a *token.Access) { a.Audience = []string{issuer, "urn:mail"} }), false},
		"bound":                 {with(forIssuer(), func(a *token.Access) { a.Thumbprint = thumbprintOf("a key") }), false},
		"delegated":             {delegated(1), false},
		"of the version before": {bearer(), true},
	} {
		for late, issued := range map[bool]time.Time{false: noon.Add(time.Hour - time.Second), true: noon.Add(time.Hour)} {
			want := row.access
			want.Issued = issued
			text := signAccess(t, ring, want)
			if row.old && !late {
				want.Audience, want.Client = nil, uuid.Nil
			}
			requireSays(t, ring, text, issued, want)
			requireSays(t, before, text, issued, want)
			if names := payloadOf(t, text)["aud"] != nil; names != (len(want.Audience) > 0) {
				t.Errorf("%s, issued %s: it names an audience: %t", name, issued, names)
			}
		}
	}
}
