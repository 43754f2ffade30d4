package token_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remit/internal/token"
	"remit/test/prover"
)

var aThumbprint = prover.Hash("a key")

// delegated is a token of a token exchange, with this many actors.
func delegated(actors int) token.Access {
	a := bearer()
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
		want   map[string]string // beside those of every token
	}{
		"for the issuer": {bearer(), map[string]string{"aud": `"` + issuer + `"`}},
		"for one resource": {
			with(bearer(), func(a *token.Access) { a.Audience = []string{"https://mcp.example/"} }),
			map[string]string{"aud": `"https://mcp.example/"`},
		},
		"for two": {
			with(bearer(), func(a *token.Access) { a.Audience = []string{issuer, "urn:mail"} }),
			map[string]string{"aud": `["` + issuer + `","urn:mail"]`},
		},
		"delegated": {one, map[string]string{
			"aud": `"` + issuer + `"`, "act": `{"sub":` + id(one.Actors[0].Agent) + `}`, "session_id": id(one.Session),
			"act_fam": `[` + id(one.Actors[0].Family) + `]`,
		}},
		"delegated along a chain, bound, an hour long": {
			with(chain, func(a *token.Access) { a.Lifetime, a.Thumbprint = 0, aThumbprint }),
			map[string]string{
				"aud": `"` + issuer + `"`, "cnf": `{"jkt":"` + aThumbprint + `"}`, "session_id": id(chain.Session),
				"act": `{"sub":` + id(chain.Actors[0].Agent) + `,"act":{"sub":` + id(chain.Actors[1].Agent) +
					`,"act":{"sub":` + id(chain.Actors[2].Agent) + `}}}`,
				"act_fam": `[` + id(chain.Actors[0].Family) + `,` + id(chain.Actors[1].Family) + `,` + id(chain.Actors[2].Family) + `]`,
			},
		},
	} {
		a := row.access
		maps.Copy(row.want, map[string]string{
			"iss": `"` + issuer + `"`, "sub": id(a.Agent), "agent_id": id(a.Agent), "org_id": id(a.Organization), "fam": id(a.Family),
			"scopes": `["orders:read","orders:write"]`, "client_id": id(a.Client),
			"iat": fmt.Sprint(noon.Unix()), "exp": fmt.Sprint(noon.Add(cmp.Or(a.Lifetime, time.Hour)).Unix()),
		})
		for _, s := range signers() {
			ring := newKeyring(t, s)
			text := signAccess(t, ring, a)
			requireSays(t, ring, text, noon, a)
			got := map[string]string{}
			for name, value := range payloadOf(t, text) {
				got[name] = string(value)
			}
			var random uuid.UUID
			if err := random.UnmarshalText([]byte(strings.Trim(got["jti"], `"`))); err != nil || random.Version() != 4 {
				t.Errorf("%s, %s: jti %s is no random UUID", name, s.name, got["jti"])
			}
			if delete(got, "jti"); !reflect.DeepEqual(got, row.want) {
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
		ring := must(token.NewKeyring("https://"+strings.Repeat("i", 92), parsed(s), []*token.RefreshKey{refreshKey(t, 0)}))(t)
		a := longest(bearer())
		requireSays(t, ring, signAccess(t, ring, a), noon, a)
	}
	ring, chain := newKeyring(t, rfc8037()), delegated(token.MaxActors)
	requireSays(t, ring, signAccess(t, ring, chain), noon, chain)
}

func TestOnlyFieldsThatBelongTogetherAreSigned(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	for name, a := range map[string]token.Access{
		"no audience":                       with(bearer(), func(a *token.Access) { a.Audience = nil }),
		"an audience without a client":      with(bearer(), func(a *token.Access) { a.Client = uuid.Nil }),
		"another client":                    with(bearer(), func(a *token.Access) { a.Client = uuid.New() }),
		"an empty audience":                 with(bearer(), func(a *token.Access) { a.Audience = []string{issuer, ""} }),
		"half a thumbprint":                 with(bearer(), func(a *token.Access) { a.Thumbprint = aThumbprint[:42] }),
		"a padded thumbprint":               with(bearer(), func(a *token.Access) { a.Thumbprint = aThumbprint[:42] + "=" }),
		"a shorter life":                    with(bearer(), func(a *token.Access) { a.Lifetime = time.Minute }),
		"a longer life":                     with(delegated(1), func(a *token.Access) { a.Lifetime = time.Hour + time.Second }),
		"a whole life in other words":       with(delegated(1), func(a *token.Access) { a.Lifetime = time.Hour }),
		"no life":                           with(delegated(1), func(a *token.Access) { a.Lifetime = -time.Second }),
		"half a second":                     with(delegated(1), func(a *token.Access) { a.Lifetime = 1500 * time.Millisecond }),
		"a session without an actor":        with(bearer(), func(a *token.Access) { a.Session = uuid.New() }),
		"an actor without a session":        with(delegated(1), func(a *token.Access) { a.Session, a.Lifetime = uuid.Nil, 0 }),
		"an actor without an id":            with(delegated(2), func(a *token.Access) { a.Actors[1].Agent = uuid.Nil }),
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

// What is wrong with a claim that every token has, TestVerifyAccessRefusesClaimsThatItDoesNotIssue shows.
func TestVerifyAccessRefusesRareClaimsThatItDoesNotIssue(t *testing.T) {
	t.Parallel()
	s := rfc8037()
	ring, good := newKeyring(t, s), goodClaims()
	const another, none = `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70b"`, `"00000000-0000-0000-0000-000000000000"`
	insert := func(more ...claim) claimSet { return slices.Insert(slices.Clone(good), 9, more...) }
	jkt := `{"jkt":"` + aThumbprint + `"}`
	act := func(value string, families ...string) claimSet {
		return insert(claim{"act", value}, claim{"act_fam", "[" + strings.Join(families, ",") + "]"}, claim{"session_id", another})
	}
	delegation := act(`{"sub":`+another+`}`, another).with("client_id", another)
	deep := strings.Repeat(`{"sub":`+another+`,"act":`, token.MaxActors) + `{"sub":` + another + `}` + strings.Repeat("}", token.MaxActors)
	payloads := []claimSet{
		append(claimSet{good[8]}, good.without("aud")...), good.with("client_id", another), good.with("exp", good[9].value), good.and("cnf", jkt),
		act("null", another), act("{}", another), act(`{"sub":`+good[1].value+`,"act":null}`, another), act(`{"sub":`+none+`}`, another),
		act(`{"sub":`+another+`}`, another), // of another client
		act(another, another), act(deep, slices.Repeat([]string{another}, token.MaxActors+1)...).with("client_id", another),
		delegation.without("act_fam"), insert(claim{"act_fam", "[" + another + "]"}),
		insert(claim{"act", `{"sub":` + another + `}`}).with("client_id", another), insert(claim{"session_id", another}), insert(claim{"session_id", none}),
		delegation.with("exp", delegation[delegation.index("iat")].value), delegation.with("exp", "0"), delegation.with("exp", "9999999999"),
	}
	for _, aud := range []string{"[]", `["` + issuer + `"]`, `["` + issuer + `",""]`, "[1,2]", "\"\xff\"", `"https:\/\/remit.example"`} {
		payloads = append(payloads, good.with("aud", aud))
	}
	for _, cnf := range []string{
		"null", "{}", `{"jkt":""}`, `{"jkt":"AAAA"}`, strings.TrimSuffix(jkt, "}") + `,"x5t#S256":"AAAA"}`, strings.TrimSuffix(jkt, "}") + "," + jkt[1:],
	} {
		payloads = append(payloads, insert(claim{"cnf", cnf}))
	}
	for _, families := range []string{"[]", "null", "[" + none + "]", "[" + another + "," + another + "]"} {
		payloads = append(payloads, delegation.with("act_fam", families))
	}
	for _, payload := range payloads {
		requireRefused(t, ring, payload.String(), s.issue(t, payload.String()), noon, token.ErrClaims)
	}
	for _, taken := range []claimSet{delegation, insert(claim{"cnf", jkt})} {
		if _, err := ring.VerifyAccess(s.issue(t, taken.String()), noon); err != nil {
			t.Errorf("%s: %v", taken, err)
		}
	}
}
