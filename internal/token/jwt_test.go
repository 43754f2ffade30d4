package token_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remit/internal/token"
)

// claim is one member of a payload, with its value in JSON; claimSet is a payload that a test can bend.
type claim struct{ name, value string }

type claimSet []claim

// goodClaims are claims as this service writes them; said is what they say.
func goodClaims() claimSet {
	return claimSet{
		{"iss", `"` + issuer + `"`},
		{"sub", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708"`},
		{"jti", `"9b2f0a52-7a61-4a53-8c55-0a5d9c1e7f11"`},
		{"agent_id", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708"`},
		{"org_id", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70a"`},
		{"fam", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f709"`},
		{"scopes", `["orders:read","orders:write"]`},
		{"client_id", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708"`},
		{"aud", `"` + issuer + `"`},
		{"iat", fmt.Sprint(noon.Unix())},
		{"exp", fmt.Sprint(noon.Unix() + 3600)},
	}
}

func said() token.Access {
	return token.Access{
		Agent:        uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708"),
		Organization: uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70a"),
		Family:       uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f709"),
		Scopes:       []string{"orders:read", "orders:write"},
		Issued:       noon,
		Audience:     []string{issuer},
		Client:       uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708"),
	}
}

// with gives each named claim another value: with("iat", "0", "exp", "3600").
func (s claimSet) with(namesAndValues ...string) claimSet {
	bent := slices.Clone(s)
	for pair := range slices.Chunk(namesAndValues, 2) {
		bent[s.index(pair[0])].value = pair[1]
	}
	return bent
}

func (s claimSet) renamed(from, to string) claimSet {
	bent := slices.Clone(s)
	bent[s.index(from)].name = to
	return bent
}

func (s claimSet) without(name string) claimSet {
	i := s.index(name)
	return slices.Delete(slices.Clone(s), i, i+1)
}

func (s claimSet) and(name, value string) claimSet {
	return append(slices.Clone(s), claim{name, value})
}

func (s claimSet) index(name string) int {
	return slices.IndexFunc(s, func(c claim) bool { return c.name == name })
}

func (s claimSet) String() string {
	members := make([]string, len(s))
	for i, c := range s {
		members[i] = `"` + c.name + `":` + c.value
	}
	return "{" + strings.Join(members, ",") + "}"
}

// issue signs any payload with the right header and the right key.
func (s *signer) issue(tb testing.TB, payload string) string {
	tb.Helper()
	return s.sign(tb, s.header(), encode(payload))
}

func TestAccessTokenHoldsWhatWasSigned(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	for _, scopes := range [][]string{
		{}, {"a"}, {"b", "a", "c"}, {"a", "a"}, {""}, {"!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~"}, // RFC 6749's characters
		{"größe", "日本", "🔑"}, {"\"\\\n\x00</script>\u2028"},
	} {
		a := bearer()
		a.Scopes = scopes
		text := signAccess(t, ring, a)
		requireSays(t, ring, text, noon, a)
		if other := signAccess(t, ring, a); other == text {
			t.Errorf("%q: signing twice gave one jti", scopes)
		}
	}
	none := with(bearer(), func(a *token.Access) { a.Scopes = nil })
	text := signAccess(t, ring, none)
	none.Scopes = []string{}
	if requireSays(t, ring, text, noon, none); string(payloadOf(t, text)["scopes"]) != "[]" {
		t.Errorf("no scopes are %s", payloadOf(t, text)["scopes"])
	}
}

func TestAccessTokenIsValidForAnHourFromTheSecondOfItsIssue(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	a := with(bearer(), func(a *token.Access) { a.Issued = noon.Add(999_999_999) })
	text, end := signAccess(t, ring, a), noon.Add(time.Hour)
	a.Issued = noon
	for _, now := range []time.Time{
		noon.Add(-30 * time.Second), noon, end.Add(-time.Second), end.Add(-time.Nanosecond), end.Add(-time.Second).Local(),
	} {
		requireSays(t, ring, text, now, a)
	}
	for _, now := range []time.Time{end, end.Add(time.Nanosecond), end.Add(time.Second), end.AddDate(100, 0, 0), end.Local()} {
		requireRefused(t, ring, now.String(), text, now, token.ErrExpired)
	}
	for _, now := range []time.Time{noon.Add(-31 * time.Second), noon.Add(-time.Hour), noon.AddDate(-200, 0, 0)} { // it comes from the future
		requireRefused(t, ring, now.String(), text, now, token.ErrClaims)
	}
}

// The size of a token depends on that of its key's signatures.
func TestSignAccessRefusesWhatVerifyAccessWouldFindTooLong(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring, a := newKeyring(t, s), bearer()
		longest := ""
		for n := 1300; ; n++ {
			a.Scopes = []string{strings.Repeat("s", n)}
			text, err := ring.SignAccess(a)
			if err != nil {
				if text != "" || !errors.Is(err, token.ErrAccessSize) || !errors.Is(err, token.ErrKey) {
					t.Errorf("%s: SignAccess = %d bytes, %v; want ErrAccessSize", s.name, len(text), err)
				}
				break
			}
			longest = text
			requireSays(t, ring, text, noon, a)
		}
		if len(longest) > token.MaxAccessSize || len(longest) < token.MaxAccessSize-2 {
			t.Errorf("%s: the longest token has %d bytes", s.name, len(longest))
		}
		long := s.issue(t, goodClaims().with("scopes", `["`+strings.Repeat("s", 2500)+`"]`).String())
		requireRefused(t, ring, s.name+", signed all the same", long, noon, token.ErrMalformed)
	}
}

func TestVerifyAccessRefusesWhatItDidNotIssue(t *testing.T) {
	t.Parallel()
	s, stranger := rfc8037(), otherEd25519()
	ring := newKeyring(t, s, signers()[1])
	public := s.private.Public().(ed25519.PublicKey)
	header, payload := s.header(), encode(goodClaims().String())
	issued := s.sign(t, header, payload)
	signature := strings.TrimPrefix(issued, header+"."+payload+".")
	raised := encode(goodClaims().with("scopes", `["admin"]`).String())
	mac := func(header, secret string) string {
		sum := hmac.New(sha256.New, []byte(secret))
		sum.Write([]byte(header + "." + payload))
		return header + "." + payload + "." + encode(string(sum.Sum(nil)))
	}
	as := func(alg string) string { return encode(`{"alg":"` + alg + `","typ":"at+jwt","kid":"` + s.kid() + `"}`) }

	for want, texts := range map[error][]string{
		token.ErrUnknownKey: {
			as("none") + "." + payload + ".", as("None") + "." + payload + ".", as("") + "." + payload + ".", as("none") + "." + payload + "." + signature,
			encode(`{"alg":"none"}`) + "." + payload + ".", "..", "." + payload + "." + signature, payload + "." + header + "." + signature,
			mac(as("HS256"), string(public)), mac(as("HS256"), string(block("PUBLIC KEY", pkix(t, public)))), s.sign(t, as("ES256"), payload),
			stranger.sign(t, stranger.header(), payload),
		},
		token.ErrSignature: {
			header + "." + payload + ".", mac(header, string(public)), stranger.sign(t, header, payload),
			signers()[1].sign(t, header, payload), s.sign(t, signers()[1].header(), payload), // each under the other's header
			header + "." + raised + "." + signature, header + ".." + signature,
			header + "." + payload + "." + strings.Split(s.sign(t, header, raised), ".")[2],
			issued[:len(issued)-2], issued + "AA", header + "." + payload + "." + encode(strings.Repeat("\x00", 64)),
			header + "." + otherLastBits(payload) + "." + signature,
		},
		token.ErrMalformed: append(deformed(issued), issued+strings.Repeat("A", token.MaxAccessSize+1-len(issued)), goldenAPIKey, goldenRefresh,
			s.sign(t, header, otherLastBits(payload)), s.sign(t, header, payload+strings.Repeat("A", (5-len(payload)%4)%4))), // a character too many
	} {
		for _, text := range texts {
			requireRefused(t, ring, "another text", text, noon, want)
		}
	}
	requireRefused(t, ring, "expired and badly signed", stranger.sign(t, header, payload), noon.AddDate(1, 0, 0), token.ErrSignature)
	requireSays(t, ring, issued, noon, said())
}

// deformed returns texts that are no JWT: of too few or too many parts, or with a character in one that the alphabet of base64url lacks.
func deformed(jwt string) []string {
	parts := strings.Split(jwt, ".")
	texts := []string{
		"", ".", "...", parts[0], parts[0] + "." + parts[1], "." + jwt, jwt + ".", jwt + "." + parts[2], jwt + ".AAAA.AAAA", jwt + "," + jwt,
		"Bearer " + jwt, `"` + jwt + `"`, parts[0] + "." + parts[1] + ".A", otherLastBits(jwt),
	}
	for at, part := range parts {
		for _, odd := range []string{"\n", "\r", "\r\n", "\t", " ", "=", "==", "+", "/", "%0A", "\x00", "~", "é", "\u00a0", "\xff"} {
			middle := len(part) / 2
			for _, bad := range []string{odd + part, part[:middle] + odd + part[middle:], part[:middle] + odd + part[middle+1:], part + odd} {
				texts = append(texts, strings.Join(slices.Concat(parts[:at], []string{bad}, parts[at+1:]), "."))
			}
		}
	}
	return texts
}

func TestVerifyAccessRefusesAChangedCharacterAnywhere(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring := newKeyring(t, s)
		issued := s.issue(t, goodClaims().String())
		requireSays(t, ring, issued, noon, said()) // the tests sign as the package does
		for i := range len(issued) {
			for _, c := range []byte{issued[i] ^ 1, 'A', '_', '.', '='} {
				changed := replaceByte(issued, i, c)
				if changed == issued {
					continue
				}
				if got, err := ring.VerifyAccess(changed, noon); err == nil {
					t.Errorf("%s, changed at %d: VerifyAccess(%s) = %+v", s.name, i, changed, got)
				}
			}
		}
	}
}

// Each of these headers is signed by the key it means, so only their bytes speak against them.
func TestVerifyAccessRefusesAHeaderThatNoKeyWrites(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring := newKeyring(t, s)
		payload := encode(goodClaims().String())
		good := `{"alg":"` + s.alg + `","typ":"at+jwt","kid":"` + s.kid() + `"}`
		headers := []string{"", "{}", good + "\n", `{"kid":"` + s.kid() + `","alg":"` + s.alg + `","typ":"at+jwt"}`, strings.Replace(good, ",", ", ", 1)}
		for _, change := range [][2]string{
			{"}", `,"alg":"none"}`}, {"}", `,"crit":[]}`}, {"}", `,"jwk":` + string(ring.JWKS()) + `}`}, {`"alg"`, `"\u0061lg"`}, {`"alg"`, `"ALG"`},
			{s.alg, "none"}, {`"alg":"` + s.alg + `",`, ""}, {"at+jwt", "application/at+jwt"}, {`"typ":"at+jwt",`, ""}, {`,"kid":"` + s.kid() + `"`, ""},
			{s.kid(), encode(strings.Repeat("\x01", 32))},
		} {
			headers = append(headers, strings.Replace(good, change[0], change[1], 1))
		}
		for _, header := range headers {
			requireRefused(t, ring, s.name+", "+header, s.sign(t, encode(header), payload), noon, token.ErrUnknownKey)
		}
		// 82 bytes of an EdDSA header leave bits in the last character, and a decoder that is not strict skips them.
		if len(s.header())%4 != 0 {
			requireRefused(t, ring, s.name+", header's trailing bits", s.sign(t, otherLastBits(s.header()), payload), noon, token.ErrUnknownKey)
		}
	}
}

// Each of these payloads is signed by the right key: only a bug of the service could make one.
func TestVerifyAccessRefusesClaimsThatItDoesNotIssue(t *testing.T) {
	t.Parallel()
	s := rfc8037()
	ring := newKeyring(t, s)
	good := goodClaims()
	const id, none = "018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70a", `"00000000-0000-0000-0000-000000000000"`
	const another = `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70b"`
	iat, text := noon.Unix(), good.String()
	payloads := []string{
		good.and("admin", "true").String(), good.and("nbf", "null").String(), good.and("", "1").String(), good.and("\xff", "1").String(),
		good.renamed("org_id", "orgId").String(), good.renamed("sub", "ſub").String(), // which folds to s
		good.and(`or\u0067_id`, another).String(),
		good.with("iat", fmt.Sprint(iat*1000), "exp", fmt.Sprint((iat+3600)*1000)).String(), good.with("iat", "0", "exp", "3600").String(),
		good.with("iat", "-3600", "exp", "0").String(), good.with("iat", "null", "exp", "3600").String(),
		good.with("sub", none, "agent_id", none).String(), good.with("sub", "null", "agent_id", "null").String(),
		text + "x", text + text, "\ufeff" + text, strings.TrimSuffix(text, "}") + ",}", text[:100], strings.ReplaceAll(text, `"`, `'`), "[" + text + "]",
		"\x00" + strings.Join(strings.Split(text, ""), "\x00"), fmt.Sprintf("%q", good), "", "null", "{}", strings.Repeat("[", 1200), encode(text),
	}
	values := map[string][]string{
		"exp": {"9223372036854775808", "9223372036854775807", "-9223372036854775808", "1e400"},
		"iss": {`"https://evil.example"`, `"` + issuer + `/"`, `"` + strings.ToUpper(issuer) + `"`, `["` + issuer + `"]`},
		"sub": {another}, "agent_id": {another},
		"scopes": {`"orders:read orders:write"`, `[["orders:read"]]`, `["orders:read",null]`, `["a"],"scopes":null`, "[\"\xff\"]", `["\ud800"]`, "[\"\n\"]",
			strings.Repeat("[", 300) + strings.Repeat("]", 300)},
	}
	for _, seconds := range []int64{3601, 3599, -3600, 0} { // after iat
		values["exp"] = append(values["exp"], fmt.Sprint(iat+seconds))
	}
	for _, form := range []string{`"%d"`, "%d.5", "%d.0", "%de0", "0%d", "+%d", "[%d]"} {
		values["iat"], values["exp"] = append(values["iat"], fmt.Sprintf(form, iat)), append(values["exp"], fmt.Sprintf(form, iat+3600))
	}
	for _, name := range []string{"sub", "jti", "agent_id", "org_id", "fam", "client_id"} {
		for _, form := range []string{
			strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "urn:uuid:" + id, "{" + id + "}", "x" + id, id[1:], id[1:] + "g",
		} {
			values[name] = append(values[name], `"`+form+`"`)
		}
		values[name] = append(values[name], none)
	}
	for _, c := range good {
		payloads = append(payloads, good.without(c.name).String(), good.and(c.name, c.value).String(),
			good.renamed(c.name, strings.ToUpper(c.name)).String(), good.renamed(c.name, strings.ToUpper(c.name[:1])+c.name[1:]).String(),
			good.renamed(c.name, c.name+" ").String(), good.and(strings.ToUpper(c.name), c.value).String())
		for _, value := range append(values[c.name], "null", "true", "NaN", "{}", "[1]", "0", "-1", `""`, "[null]") {
			payloads = append(payloads, good.with(c.name, value).String())
		}
	}
	for _, payload := range payloads {
		requireRefused(t, ring, payload, s.issue(t, payload), noon, token.ErrClaims)
	}
	requireRefused(t, ring, "bad and expired", s.issue(t, payloads[0]), noon.AddDate(1, 0, 0), token.ErrClaims)
}

// Run it with -fuzzminimizetime=50x: by default the engine spends its time shortening what it finds.
func FuzzVerifyAccess(f *testing.F) {
	s := rfc8037()
	ring := newKeyring(f, s)
	issued := s.issue(f, goodClaims().String()) // always the same: Ed25519 signatures are
	for _, seed := range []string{
		"", "..", "...", issued, issued + "\n", issued + "=", otherLastBits(issued), goldenRefresh,
		otherEd25519().issue(f, goodClaims().String()), s.header() + ".." + encode(strings.Repeat("\x00", 64)),
		goodClaims().String(), goodClaims().without("jti").String(), goodClaims().and("aud", "null").String(),
		goodClaims().with("aud", `["`+issuer+`","urn:a"]`).String(),
		slices.Insert(goodClaims(), 9, claim{"cnf", `{"jkt":"` + aThumbprint + `"}`}).String(),
		slices.Insert(goodClaims(), 9, claim{"act", `{"sub":` + goodClaims()[1].value + `}`}, claim{"session_id", goodClaims()[5].value}).String(),
		goodClaims().with("scopes", "[]").String(), goodClaims().with("exp", "1e400").String(), "null", "[[", "{\"\xff\":0}",
		goodClaims().with("iat", "9223372036854775807", "exp", "-9223372036854772209").String(),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ring.VerifyAccess(text, noon)
		if (err == nil) != (text == issued) || (err != nil && !reflect.DeepEqual(got, token.Access{})) {
			t.Errorf("VerifyAccess(%q) = %+v, %v", text, got, err)
		}
		requireOurClaims(t, ring, s, text) // as a payload that the right key signed
	})
}

// requireOurClaims fails when the keyring takes a signed payload that is not, byte for byte, what it would write for what it read, or that
// says another thing to the standard library than to the keyring.
func requireOurClaims(tb testing.TB, ring *token.Keyring, s *signer, payload string) {
	tb.Helper()
	got, err := ring.VerifyAccess(s.issue(tb, payload), noon)
	if err != nil {
		return
	}
	var read struct {
		ID           string    `json:"jti"`
		Issuer       string    `json:"iss"`
		Agent        uuid.UUID `json:"agent_id"`
		Subject      uuid.UUID `json:"sub"`
		Organization uuid.UUID `json:"org_id"`
		Family       uuid.UUID `json:"fam"`
		Client       uuid.UUID `json:"client_id"`
		Session      uuid.UUID `json:"session_id"`
		Scopes       []string  `json:"scopes"`
		Issued       int64     `json:"iat"`
		Expires      int64     `json:"exp"`
	}
	if err := json.Unmarshal([]byte(payload), &read); err != nil {
		tb.Fatalf("%q was accepted: %v", payload, err)
	}
	if read.Issuer != issuer || read.Agent != got.Agent || read.Subject != got.Agent || read.Organization != got.Organization ||
		read.Family != got.Family || read.Client != got.Client || read.Session != got.Session || !slices.Equal(read.Scopes, got.Scopes) ||
		read.Issued != got.Issued.Unix() || read.Expires != got.Expires().Unix() {
		tb.Errorf("%q says %+v to one, %+v to the other", payload, got, read)
	}
	text := signAccess(tb, ring, got)
	again := string(decode(tb, strings.Split(text, ".")[1]))
	if id := strings.Trim(string(payloadOf(tb, text)["jti"]), `"`); strings.Replace(again, id, read.ID, 1) != payload {
		tb.Errorf("%q was accepted; the keyring writes %q", payload, again)
	}
}

// longest returns the token with as much in it as any agent's may have, but for those of token exchange: 64 scopes of 600 characters
// together, here of those that HTML-minded JSON encoders write as six; eight resources of 512 bytes together; and a key.
func longest(a token.Access) token.Access {
	a.Scopes, a.Audience, a.Client, a.Thumbprint = make([]string, 64), nil, a.Agent, aThumbprint
	for i := range a.Scopes {
		a.Scopes[i] = fmt.Sprintf("<&>%06d", i)
	}
	a.Scopes[0] += strings.Repeat("&", 600-len(strings.Join(a.Scopes, "")))
	for i := range 8 {
		a.Audience = append(a.Audience, fmt.Sprintf("https://%d.example/", i)+strings.Repeat("r", 46))
	}
	return a
}

func payloadOf(tb testing.TB, text string) map[string]json.RawMessage {
	tb.Helper()
	var members map[string]json.RawMessage
	must(0, json.Unmarshal(decode(tb, strings.Split(text, ".")[1]), &members))(tb)
	return members
}

// otherLastBits changes the bits of the last character that a decoder drops. It panics when there are none.
func otherLastBits(text string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	part := text[strings.LastIndex(text, ".")+1:]
	if len(part)%4 < 2 {
		panic("no bits are left over in " + part)
	}
	last := len(text) - 1
	return replaceByte(text, last, alphabet[strings.IndexByte(alphabet, text[last])^1])
}
