package token_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"remit/internal/token"
	"remit/test/prover"
	"remit/test/suite"
)

const issuer = "https://remit.example"

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// signer holds both halves of a test: the key as the package read it, and the private key, with which a test signs
// whatever the package would not.
type signer struct {
	name    string
	alg     string
	private crypto.Signer
	parsed  *token.SigningKey
}

// newSigner panics, because the shared signers are made outside of any test.
func newSigner(name, alg string, private crypto.Signer, err error) *signer {
	if err != nil {
		panic(err)
	}
	parsed, err := token.ParseSigningKey(pkcs8(private))
	if err != nil {
		panic(err)
	}
	return &signer{name, alg, private, parsed}
}

// signers are one of each kind that is signed with. The first never changes: RFC 8037 Appendix A.
var signers = sync.OnceValue(func() []*signer {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p256Signer := newSigner("P-256", "ES256", p256, err)
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	return []*signer{rfc8037(), p256Signer, newSigner("RSA-2048", "RS256", rsa2048, err)}
})

func rfc8037() *signer {
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	return newSigner("Ed25519", "EdDSA", ed25519.NewKeyFromSeed(seed), err)
}

// otherEd25519 is a signer that no shared keyring knows.
func otherEd25519() *signer {
	return newSigner("other Ed25519", "EdDSA", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), nil)
}

// key is the key as code reads and names it that shares nothing with the package.
func (s *signer) key() *prover.Key { return &prover.Key{Algorithm: s.alg, Private: s.private} }

func (s *signer) kid() string { return s.key().Thumbprint() }

// header is the one that the package writes, spelled here once more.
func (s *signer) header() string {
	return encode(`{"alg":"` + s.alg + `","typ":"at+jwt","kid":"` + s.kid() + `"}`)
}

// sign signs any two parts, as they will stand in the token.
func (s *signer) sign(tb testing.TB, header, payload string) string {
	tb.Helper()
	signature := must(jwt.GetSigningMethod(s.alg).Sign(header+"."+payload, s.private))(tb)
	return header + "." + payload + "." + encode(string(signature))
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func pkcs8(private any) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// refreshKey returns the key of 32 bytes that count up from first.
func refreshKey(tb testing.TB, first byte) *token.RefreshKey {
	tb.Helper()
	return must(token.ParseRefreshKey([]byte(base64.StdEncoding.EncodeToString(countUp(first)))))(tb)
}

func countUp(first byte) []byte {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = first + byte(i)
	}
	return secret
}

func newKeyring(tb testing.TB, signing ...*signer) *token.Keyring {
	tb.Helper()
	return must(token.NewKeyring(issuer, parsed(signing...), []*token.RefreshKey{refreshKey(tb, 0)}))(tb)
}

func parsed(signing ...*signer) []*token.SigningKey {
	keys := make([]*token.SigningKey, len(signing))
	for i, s := range signing {
		keys[i] = s.parsed
	}
	return keys
}

func bearer() token.Access {
	agent := uuid.New()
	return token.Access{
		Agent: agent, Organization: uuid.New(), Family: uuid.New(),
		Scopes: []string{"orders:read", "orders:write"}, Issued: noon, Audience: []string{issuer}, Client: agent,
	}
}

func signAccess(tb testing.TB, ring *token.Keyring, a token.Access) string {
	tb.Helper()
	return must(ring.SignAccess(a))(tb)
}

// requireSays fails unless the keyring takes the text for an access token that says want.
func requireSays(tb testing.TB, ring *token.Keyring, text string, now time.Time, want token.Access) {
	tb.Helper()
	got, err := ring.VerifyAccess(text, now)
	got.Issued, want.Issued = got.Issued.UTC(), want.Issued.UTC()
	if err != nil || !reflect.DeepEqual(got, want) {
		tb.Errorf("VerifyAccess(%s) = %+v, %v; want %+v", text, got, err, want)
	}
}

// requireRefused fails unless the keyring refuses the text with want, and says nothing of what it read.
func requireRefused(tb testing.TB, ring *token.Keyring, name, text string, now time.Time, want error) {
	tb.Helper()
	got, err := ring.VerifyAccess(text, now)
	if !errors.Is(err, want) || !reflect.DeepEqual(got, token.Access{}) {
		tb.Errorf("%s: VerifyAccess(%.300q) = %+v, %v; want %v", name, text, got, err, want)
	}
}

func TestNewKeyringRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	first, second := rfc8037().parsed, otherEd25519().parsed
	again := rfc8037().parsed // another reading of the first key
	one, two := refreshKey(t, 0), refreshKey(t, 1)
	type keys struct {
		signing []*token.SigningKey
		refresh []*token.RefreshKey
	}
	signing := func(all ...*token.SigningKey) keys { return keys{all, []*token.RefreshKey{one}} }
	refresh := func(all ...*token.RefreshKey) keys { return keys{[]*token.SigningKey{first}, all} }
	for want, all := range map[error][]keys{
		nil: {signing(first), signing(first, second), refresh(one, two)},
		token.ErrKey: {
			{}, signing(), refresh(), signing(first, first), signing(first, second, again), refresh(one, one), refresh(one, two, refreshKey(t, 0)),
		},
	} {
		for i, of := range all {
			ring, err := token.NewKeyring(issuer, of.signing, of.refresh)
			if !errors.Is(err, want) || (ring != nil) != (want == nil) {
				t.Errorf("number %d: NewKeyring returned a keyring: %t, and %v; want %v", i, ring != nil, err, want)
			}
		}
	}
}

func TestKeyringKeepsItsKeysWhenTheCallersListChanges(t *testing.T) {
	t.Parallel()
	signing, refresh := parsed(rfc8037()), []*token.RefreshKey{refreshKey(t, 0)}
	ring := must(token.NewKeyring(issuer, signing, refresh))(t)
	signing[0], refresh[0] = otherEd25519().parsed, refreshKey(t, 1)
	a := bearer()
	requireSays(t, ring, signAccess(t, ring, a), noon, a)
	if got := ring.FormatRefresh(goldenFacts); got != goldenRefresh {
		t.Errorf("FormatRefresh = %s; want %s", got, goldenRefresh)
	}
}

func TestJWKSHasThePublicMembersOfEachKeySigningOneFirst(t *testing.T) {
	t.Parallel()
	all := signers()
	for _, order := range [][]*signer{{all[0], all[1], all[2]}, {all[2], all[0], all[1]}, {all[1]}} {
		requireJWKS(t, order...)
	}
}

// requireJWKS fails unless a keyring of these keys publishes them in this order, with their members and no others.
func requireJWKS(tb testing.TB, order ...*signer) {
	tb.Helper()
	var want []map[string]any
	for _, s := range order {
		key := s.key().JWK()
		key["alg"], key["kid"], key["use"] = s.alg, s.kid(), "sig"
		want = append(want, key)
	}
	if got := readJWKS(tb, newKeyring(tb, order...)); !reflect.DeepEqual(got, want) {
		tb.Errorf("the keys are %v, want %v", got, want)
	}
}

func TestKeysInAnotherOrderVerifyEachOther(t *testing.T) {
	t.Parallel()
	all := signers()
	rings := []*token.Keyring{newKeyring(t, all[0], otherEd25519(), all[1], all[2]), newKeyring(t, all[2], all[1], otherEd25519(), all[0])}
	for i, ring := range rings {
		a := bearer()
		requireSays(t, rings[1-i], signAccess(t, ring, a), noon, a)
	}
}

func TestKeyringIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, signers()...)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			a := bearer()
			requireSays(t, ring, signAccess(t, ring, a), noon, a)
			want := token.RefreshToken{Agent: a.Agent, Family: a.Family, Generation: 1}
			if got, err := ring.ParseRefresh(ring.FormatRefresh(want)); err != nil || got != want {
				t.Errorf("ParseRefresh = %+v, %v; want %+v", got, err, want)
			}
		})
	}
	wait.Wait()
}

func readJWKS(tb testing.TB, ring *token.Keyring) []map[string]any {
	tb.Helper()
	var set map[string][]map[string]any
	if err := json.Unmarshal(ring.JWKS(), &set); err != nil || len(set) != 1 {
		tb.Fatalf("%s: %v", ring.JWKS(), err)
	}
	return set["keys"]
}

func TestKeyringsAreEqualWithTheSameKeysInTheSameOrder(t *testing.T) {
	t.Parallel()
	ring := func(issuer string, signing []*token.SigningKey, refresh ...*token.RefreshKey) *token.Keyring {
		return must(token.NewKeyring(issuer, signing, refresh))(t)
	}
	all := signers()
	two, first, second := parsed(all[0], all[1]), refreshKey(t, 0), refreshKey(t, 1)
	base := ring(issuer, two, first, second)
	for want, others := range map[bool][]*token.Keyring{
		true: {base, ring(issuer, parsed(all[0], all[1]), refreshKey(t, 0), refreshKey(t, 1))},
		false: {
			ring(issuer+"/", two, first, second), ring(issuer, parsed(all[0]), first, second), ring(issuer, parsed(all[1], all[0]), first, second),
			ring(issuer, two, first), ring(issuer, two, second, first),
		},
	} {
		for i, other := range others {
			if base.Equal(other) != want || other.Equal(base) != want {
				t.Errorf("number %d: not %t", i, want)
			}
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }
