package token_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
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
	for name, scopes := range map[string][]string{
		"none":                  {},
		"one":                   {"a"},
		"in their order":        {"b", "a", "c"},
		"twice":                 {"a", "a"},
		"empty":                 {""},
		"RFC 6749's characters": {"!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~"},
		"not ASCII":             {"größe", "日本", "🔑"},
		"to be escaped":         {"\"\\\n\x00</script>\u2028"},
	} {
		a := bearer()
		a.Scopes = scopes
		text := signAccess(t, ring, a)
		requireSays(t, ring, text, noon, a)
		if other := signAccess(t, ring, a); other == text {
			t.Errorf("%s: signing twice gave one jti", name)
		}
	}
}

func TestNoScopesAreSignedAsAnEmptyList(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	a := bearer()
	a.Scopes = nil
	text := signAccess(t, ring, a)
	if got := payloadOf(t, text)["scopes"]; string(got) != "[]" {
		t.Errorf("scopes %s", got)
	}
	a.Scopes = []string{}
	requireSays(t, ring, text, noon, a)
}

func TestAccessTokenExpiresAnHourAfterItsIssue(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	a := bearer()
	text := signAccess(t, ring, a)
	end := noon.Add(time.Hour)
	for _, now := range []time.Time{
		noon.Add(-30 * time.Second), noon, end.Add(-time.Second), end.Add(-time.Nanosecond), end.Add(-time.Second).Local(),
	} {
		requireSays(t, ring, text, now, a)
	}
	for _, now := range []time.Time{end, end.Add(time.Nanosecond), end.Add(time.Second), end.AddDate(100, 0, 0), end.Local()} {
		requireRefused(t, ring, now.String(), text, now, token.ErrExpired)
	}
}

func TestVerifyAccessRefusesATokenFromTheFuture(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	text := signAccess(t, ring, bearer())
	for _, now := range []time.Time{noon.Add(-31 * time.Second), noon.Add(-time.Hour), noon.AddDate(-200, 0, 0)} {
		requireRefused(t, ring, now.String(), text, now, token.ErrClaims)
	}
}

func TestAccessTokenIsIssuedOnTheSecond(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, rfc8037())
	a := bearer()
	a.Issued = noon.Add(999_999_999)
	text := signAccess(t, ring, a)
	a.Issued = noon
	requireSays(t, ring, text, noon.Add(time.Hour-1), a)
	requireRefused(t, ring, "an hour after the second", text, noon.Add(time.Hour), token.ErrExpired)
}

func TestSignAccessRefusesWhatVerifyAccessWouldFindTooLong(t *testing.T) {
	t.Parallel()
	s := rfc8037()
	ring := newKeyring(t, s)
	a := bearer()
	longest := 0
	for n := 600; ; n++ {
		a.Scopes = []string{strings.Repeat("s", n)}
		text, err := ring.SignAccess(a)
		if err != nil {
			requireErrKey(t, text, err)
			break
		}
		longest = len(text)
		requireSays(t, ring, text, noon, a)
	}
	if longest > token.MaxAccessSize || longest < token.MaxAccessSize-2 {
		t.Errorf("the longest token has %d bytes", longest)
	}
	long := s.issue(t, goodClaims().with("scopes", `["`+strings.Repeat("s", 2500)+`"]`).String())
	requireRefused(t, ring, "signed all the same", long, noon, token.ErrMalformed)
}

func TestSignAccessRefusesALongTokenOfALongKey(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 4096)
	ring := newKeyring(t, newSigner("RSA-4096", "RS256", key, err))
	a := bearer()
	requireSays(t, ring, signAccess(t, ring, a), noon, a)
	a = longest(a)
	text, err := ring.SignAccess(a)
	requireErrKey(t, text, err)
	if !errors.Is(err, token.ErrAccessSize) {
		t.Errorf("SignAccess: %v; want ErrAccessSize", err)
	}
}

// A test signs here what the package never would, so first: it signs what the package does, too.
func TestThisTestSignsLikeThePackage(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		requireSays(t, newKeyring(t, s), s.issue(t, goodClaims().String()), noon, said())
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
	other := s.sign(t, header, raised)
	otherSignature := other[strings.LastIndex(other, ".")+1:]
	mac := func(header, secret string) string {
		sum := hmac.New(sha256.New, []byte(secret))
		sum.Write([]byte(header + "." + payload))
		return header + "." + payload + "." + encode(string(sum.Sum(nil)))
	}
	hs256 := encode(`{"alg":"HS256","typ":"at+jwt","kid":"` + s.kid() + `"}`)
	publicPEM := string(block("PUBLIC KEY", pkix(t, public)))
	none := func(alg string) string {
		return encode(`{"alg":"`+alg+`","typ":"at+jwt","kid":"`+s.kid()+`"}`) + "." + payload
	}

	for _, row := range []struct {
		name string
		text string
		want error
	}{
		{"alg none, no signature", none("none") + ".", token.ErrUnknownKey},
		{"alg None, no signature", none("None") + ".", token.ErrUnknownKey},
		{"alg NONE, no signature", none("NONE") + ".", token.ErrUnknownKey},
		{"alg empty, no signature", none("") + ".", token.ErrUnknownKey},
		{"alg none, signature", none("none") + "." + signature, token.ErrUnknownKey},
		{"alg none, two parts", none("none"), token.ErrMalformed},
		{"alg none alone in the header", encode(`{"alg":"none"}`) + "." + payload + ".", token.ErrUnknownKey},
		{"good header, no signature", header + "." + payload + ".", token.ErrSignature},
		{"HS256 with the public key", mac(hs256, string(public)), token.ErrUnknownKey},
		{"HS256 with the public key in PEM", mac(hs256, publicPEM), token.ErrUnknownKey},
		{"HS256 with the public key in base64url", mac(hs256, encode(string(public))), token.ErrUnknownKey},
		{"HMAC under the good header", mac(header, string(public)), token.ErrSignature},
		{"ES256 with an Ed25519 kid", s.sign(t, encode(`{"alg":"ES256","typ":"at+jwt","kid":"`+s.kid()+`"}`), payload), token.ErrUnknownKey},

		{"a stranger's key", stranger.sign(t, stranger.header(), payload), token.ErrUnknownKey},
		{"a stranger's signature", stranger.sign(t, header, payload), token.ErrSignature},
		{"another of our keys under this header", signers()[1].sign(t, header, payload), token.ErrSignature},
		{"this key under another of our headers", s.sign(t, signers()[1].header(), payload), token.ErrSignature},

		{"payload of another token", header + "." + raised + "." + signature, token.ErrSignature},
		{"signature of another token", header + "." + payload + "." + otherSignature, token.ErrSignature},
		{"payload empty", header + ".." + signature, token.ErrSignature},
		{"signature cut", issued[:len(issued)-2], token.ErrSignature},
		{"signature grown", issued + "AA", token.ErrSignature},
		{"signature twice", issued + signature, token.ErrSignature},
		{"signature zero", header + "." + payload + "." + encode(strings.Repeat("\x00", 64)), token.ErrSignature},
		{"payload's trailing bits", header + "." + otherLastBits(payload) + "." + signature, token.ErrSignature},
		{"signature's trailing bits", otherLastBits(issued), token.ErrMalformed},
		{"signature of a bad length", header + "." + payload + ".A", token.ErrMalformed},

		{"empty", "", token.ErrMalformed},
		{"one dot", ".", token.ErrMalformed},
		{"two dots", "..", token.ErrUnknownKey},
		{"three dots", "...", token.ErrMalformed},
		{"many dots", strings.Repeat(".", token.MaxAccessSize), token.ErrMalformed},
		{"one part", header, token.ErrMalformed},
		{"two parts", header + "." + payload, token.ErrMalformed},
		{"four parts", issued + "." + signature, token.ErrMalformed},
		{"four parts, the last empty", issued + ".", token.ErrMalformed},
		{"five parts, as JWE", issued + ".AAAA.AAAA", token.ErrMalformed},
		{"dot before", "." + issued, token.ErrMalformed},
		{"no header", "." + payload + "." + signature, token.ErrUnknownKey},
		{"parts in another order", payload + "." + header + "." + signature, token.ErrUnknownKey},
		{"header's case changed", strings.ToLower(header) + "." + payload + "." + signature, token.ErrUnknownKey},

		{"space before", " " + issued, token.ErrMalformed},
		{"space after", issued + " ", token.ErrMalformed},
		{"line break before", "\n" + issued, token.ErrMalformed},
		{"line break after", issued + "\n", token.ErrMalformed},
		{"DOS line break after", issued + "\r\n", token.ErrMalformed},
		{"tab after", issued + "\t", token.ErrMalformed},
		{"NUL after", issued + "\x00", token.ErrMalformed},
		{"scheme before", "Bearer " + issued, token.ErrMalformed},
		{"quotes", `"` + issued + `"`, token.ErrMalformed},
		{"JSON serialization", `{"protected":"` + header + `","payload":"` + payload + `","signature":"` + signature + `"}`, token.ErrMalformed},

		{"one byte over 3 KiB", issued + strings.Repeat("A", token.MaxAccessSize+1-len(issued)), token.ErrMalformed},
		{"huge", strings.Repeat(issued, 10_000), token.ErrMalformed},
		{"API key", goldenAPIKey, token.ErrMalformed},
		{"agent secret", goldenSecret, token.ErrMalformed},
		{"refresh token", goldenRefresh, token.ErrMalformed},
	} {
		requireRefused(t, ring, row.name, row.text, noon, row.want)
	}
	requireRefused(t, ring, "expired and badly signed", stranger.sign(t, header, payload), noon.AddDate(1, 0, 0), token.ErrSignature)
	requireSays(t, ring, issued, noon, said())
}

func TestVerifyAccessRefusesCharactersOutsideTheAlphabet(t *testing.T) {
	t.Parallel()
	s := rfc8037()
	ring := newKeyring(t, s)
	good := strings.Split(s.issue(t, goodClaims().String()), ".")
	for part, name := range []string{"header", "payload", "signature"} {
		for _, odd := range []string{"\n", "\r", "\r\n", "\t", " ", "=", "==", "+", "/", "%0A", "\x00", "~", "é", "\u00a0", "\xff"} {
			middle := len(good[part]) / 2
			for where, bad := range map[string]string{
				"in front of": odd + good[part],
				"inside":      good[part][:middle] + odd + good[part][middle:],
				"in place in": good[part][:middle] + odd + good[part][middle+1:],
				"at the end":  good[part] + odd,
			} {
				parts := slices.Clone(good)
				parts[part] = bad
				requireRefused(t, ring, fmt.Sprintf("%q %s the %s", odd, where, name), strings.Join(parts, "."), noon, token.ErrMalformed)
			}
		}
	}
}

func TestVerifyAccessRefusesAChangedCharacterAnywhere(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring := newKeyring(t, s)
		issued := s.issue(t, goodClaims().String())
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
		jwks := strings.TrimSuffix(strings.TrimPrefix(string(ring.JWKS()), `{"keys":[`), `]}`)
		and := func(member string) string { return strings.TrimSuffix(good, "}") + "," + member + "}" }
		typ := func(value string) string { return strings.Replace(good, `"typ":"at+jwt"`, value, 1) }
		kid := func(value string) string { return strings.Replace(good, `"`+s.kid()+`"`, value, 1) }
		for name, header := range map[string]string{
			"space inside":         strings.Replace(good, ",", ", ", 1),
			"space before":         " " + good,
			"line break after":     good + "\n",
			"kid first":            `{"kid":"` + s.kid() + `","alg":"` + s.alg + `","typ":"at+jwt"}`,
			"escaped letter":       strings.Replace(good, `"alg"`, `"\u0061lg"`, 1),
			"upper-case name":      strings.Replace(good, `"alg"`, `"ALG"`, 1),
			"lower-case alg":       strings.Replace(good, s.alg, strings.ToLower(s.alg), 1),
			"alg twice":            and(`"alg":"` + s.alg + `"`),
			"alg none second":      and(`"alg":"none"`),
			"no alg":               strings.Replace(good, `"alg":"`+s.alg+`",`, "", 1),
			"alg none":             strings.Replace(good, s.alg, "none", 1),
			"empty crit":           and(`"crit":[]`),
			"unknown crit":         and(`"crit":["exp"],"exp":1`),
			"crit b64":             and(`"b64":false,"crit":["b64"]`),
			"jwk":                  and(`"jwk":` + jwks),
			"jku":                  and(`"jku":"` + issuer + `/.well-known/jwks.json"`),
			"x5u":                  and(`"x5u":"https://example.com/chain.pem"`),
			"x5c":                  and(`"x5c":["AAAA"]`),
			"zip":                  and(`"zip":"DEF"`),
			"cty":                  and(`"cty":"JWT"`),
			"typ JWT":              typ(`"typ":"JWT"`),
			"typ in capitals":      typ(`"typ":"AT+JWT"`),
			"typ as a media type":  typ(`"typ":"application/at+jwt"`),
			"typ dpop+jwt":         typ(`"typ":"dpop+jwt"`),
			"typ null":             typ(`"typ":null`),
			"no typ":               strings.Replace(good, `"typ":"at+jwt",`, "", 1),
			"unknown kid":          kid(`"` + encode(strings.Repeat("\x01", 32)) + `"`),
			"kid of a file":        kid(`"../../dev/null"`),
			"kid of a file, NUL":   kid(`"../../dev/null\u0000"`),
			"kid with SQL":         kid(`"' UNION SELECT 'key"`),
			"kid empty":            kid(`""`),
			"kid null":             kid(`null`),
			"kid a number":         kid(`0`),
			"kid a list":           kid(`["` + s.kid() + `"]`),
			"kid padded":           kid(`"` + s.kid() + `="`),
			"kid cut":              kid(`"` + s.kid()[:42] + `"`),
			"no kid":               strings.Replace(good, `,"kid":"`+s.kid()+`"`, "", 1),
			"byte order mark":      "\ufeff" + good,
			"bytes after":          good + "{}",
			"not UTF-8":            and("\"\xff\":1"),
			"null":                 "null",
			"list":                 "[]",
			"object without names": "{}",
			"nothing":              "",
		} {
			if header == good {
				t.Errorf("%s, %s: the header is the good one", s.name, name)
			}
			requireRefused(t, ring, s.name+", "+name, s.sign(t, encode(header), payload), noon, token.ErrUnknownKey)
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
	const none = `"00000000-0000-0000-0000-000000000000"`
	const another = `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70b"`
	iat := noon.Unix()
	payloads := map[string]string{
		"another claim":         good.and("admin", "true").String(),
		"another claim, null":   good.and("nbf", "null").String(),
		"nbf":                   good.and("nbf", fmt.Sprint(iat)).String(),
		"a claim without name":  good.and("", "1").String(),
		"ORG_ID besides org_id": good.and("ORG_ID", another).String(),
		"orgId for org_id":      good.renamed("org_id", "orgId").String(),
		"Exp for exp":           good.renamed("exp", "Exp").String(),
		"ſub for sub":           good.renamed("sub", "ſub").String(), // folds to s
		"escaped twin":          good.and(`or\u0067_id`, another).String(),

		"exp a string":             good.with("exp", fmt.Sprintf(`"%d"`, iat+3600)).String(),
		"exp with a fraction":      good.with("exp", fmt.Sprintf("%d.5", iat+3600)).String(),
		"exp with a zero fraction": good.with("exp", fmt.Sprintf("%d.0", iat+3600)).String(),
		"exp with an exponent":     good.with("exp", fmt.Sprintf("%de0", iat+3600)).String(),
		"exp beyond 64 bits":       good.with("exp", "9223372036854775808").String(),
		"exp the last second":      good.with("exp", "9223372036854775807").String(),
		"exp beyond a double":      good.with("exp", "1e400").String(),
		"exp negative":             good.with("exp", "-1").String(),
		"exp the first second":     good.with("exp", "-9223372036854775808").String(),
		"exp zero":                 good.with("exp", "0").String(),
		"exp with a leading zero":  good.with("exp", fmt.Sprintf("0%d", iat+3600)).String(),
		"exp with a plus":          good.with("exp", fmt.Sprintf("+%d", iat+3600)).String(),
		"exp null":                 good.with("exp", "null").String(),
		"exp true":                 good.with("exp", "true").String(),
		"exp a list":               good.with("exp", fmt.Sprintf("[%d]", iat+3600)).String(),
		"exp NaN":                  good.with("exp", "NaN").String(),
		"a second too long":        good.with("exp", fmt.Sprint(iat+3601)).String(),
		"a second too short":       good.with("exp", fmt.Sprint(iat+3599)).String(),
		"exp before iat":           good.with("exp", fmt.Sprint(iat-3600)).String(),
		"no time at all":           good.with("exp", fmt.Sprint(iat)).String(),
		"milliseconds":             good.with("iat", fmt.Sprint(iat*1000), "exp", fmt.Sprint((iat+3600)*1000)).String(),
		"iat zero":                 good.with("iat", "0", "exp", "3600").String(),
		"iat negative":             good.with("iat", "-3600", "exp", "0").String(),
		"iat a string":             good.with("iat", fmt.Sprintf(`"%d"`, iat)).String(),
		"iat with a fraction":      good.with("iat", fmt.Sprintf("%d.5", iat)).String(),
		"iat null":                 good.with("iat", "null").String(),
		"iat null, exp an hour":    good.with("iat", "null", "exp", "3600").String(),

		"another issuer":           good.with("iss", `"https://evil.example"`).String(),
		"issuer with a slash":      good.with("iss", `"`+issuer+`/"`).String(),
		"issuer in capitals":       good.with("iss", `"`+strings.ToUpper(issuer)+`"`).String(),
		"issuer empty":             good.with("iss", `""`).String(),
		"issuer null":              good.with("iss", "null").String(),
		"issuer a list":            good.with("iss", `["`+issuer+`"]`).String(),
		"sub of another agent":     good.with("sub", another).String(),
		"agent_id of another":      good.with("agent_id", another).String(),
		"sub nil":                  good.with("sub", none).String(),
		"agent_id nil":             good.with("agent_id", none).String(),
		"sub and agent_id nil":     good.with("sub", none, "agent_id", none).String(),
		"sub and agent_id null":    good.with("sub", "null", "agent_id", "null").String(),
		"jti nil":                  good.with("jti", none).String(),
		"jti null":                 good.with("jti", "null").String(),
		"jti empty":                good.with("jti", `""`).String(),
		"org_id nil":               good.with("org_id", none).String(),
		"org_id null":              good.with("org_id", "null").String(),
		"org_id empty":             good.with("org_id", `""`).String(),
		"org_id no UUID":           good.with("org_id", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70g"`).String(),
		"org_id cut":               good.with("org_id", `"018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70"`).String(),
		"org_id a number":          good.with("org_id", "1").String(),
		"org_id bytes":             good.with("org_id", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]").String(),
		"fam nil":                  good.with("fam", none).String(),
		"fam null":                 good.with("fam", "null").String(),
		"scopes null":              good.with("scopes", "null").String(),
		"scopes a string":          good.with("scopes", `"orders:read orders:write"`).String(),
		"scopes an object":         good.with("scopes", `{"0":"orders:read"}`).String(),
		"scopes of numbers":        good.with("scopes", "[1]").String(),
		"scopes in scopes":         good.with("scopes", `[["orders:read"]]`).String(),
		"scopes true":              good.with("scopes", "true").String(),
		"scopes not UTF-8":         good.with("scopes", "[\"\xff\"]").String(),
		"scopes half a surrogate":  good.with("scopes", `["\ud800"]`).String(),
		"scopes an overlong slash": good.with("scopes", "[\"\xc0\xaf\"]").String(),
		"scopes a line break":      good.with("scopes", "[\"\n\"]").String(),

		"name not UTF-8":           good.and("\xff", "1").String(),
		"letters after":            good.String() + "x",
		"an object after":          good.String() + "{}",
		"the same after":           good.String() + good.String(),
		"NUL after":                good.String() + "\x00",
		"brace after":              good.String() + "}",
		"byte order mark":          "\ufeff" + good.String(),
		"comment":                  good.String() + "/**/",
		"comma at the end":         strings.TrimSuffix(good.String(), "}") + ",}",
		"cut":                      good.String()[:100],
		"UTF-16":                   "\x00" + strings.Join(strings.Split(good.String(), ""), "\x00"),
		"single quotes":            strings.ReplaceAll(good.String(), `"`, `'`),
		"in a list":                "[" + good.String() + "]",
		"in an object":             `{"claims":` + good.String() + "}",
		"in a string":              fmt.Sprintf("%q", good),
		"nothing":                  "",
		"null":                     "null",
		"true":                     "true",
		"number":                   "0",
		"string":                   `""`,
		"list":                     "[]",
		"object":                   "{}",
		"deep":                     strings.Repeat("[", 1200),
		"deep in scopes":           good.with("scopes", strings.Repeat("[", 300)+strings.Repeat("]", 300)).String(),
		"base64 of base64":         encode(good.String()),
		"claims without a subject": `{"iss":"` + issuer + `"}`,
		"scopes with null":         good.with("scopes", `["orders:read",null]`).String(),
		"scopes before null":       good.with("scopes", `["a"],"scopes":null`).String(),
	}
	const id = "018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70a"
	for _, name := range []string{"jti", "org_id", "fam"} {
		for _, value := range []string{
			strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "urn:uuid:" + id, "{" + id + "}", "x" + id + "y",
		} {
			payloads[name+" "+value] = good.with(name, `"`+value+`"`).String()
		}
	}
	for _, c := range good {
		payloads["no "+c.name] = good.without(c.name).String()
		payloads[c.name+" twice"] = good.and(c.name, c.value).String()
		payloads[c.name+" in capitals"] = good.renamed(c.name, strings.ToUpper(c.name)).String()
		payloads[c.name+" with a capital"] = good.renamed(c.name, strings.ToUpper(c.name[:1])+c.name[1:]).String()
		payloads[c.name+" with a space"] = good.renamed(c.name, c.name+" ").String()
		payloads[c.name+" and in capitals"] = good.and(strings.ToUpper(c.name), c.value).String()
		payloads[c.name+" an object"] = good.with(c.name, "{}").String()
	}
	for name, payload := range payloads {
		requireRefused(t, ring, name, s.issue(t, payload), noon, token.ErrClaims)
	}
	requireRefused(t, ring, "bad and expired", s.issue(t, payloads["another claim"]), noon.AddDate(1, 0, 0), token.ErrClaims)
}

func TestVerifyAccessRefusesASignedPayloadWithLooseBits(t *testing.T) {
	t.Parallel()
	s := rfc8037()
	ring := newKeyring(t, s)
	payload := encode(goodClaims().String())
	lone := payload + strings.Repeat("A", (5-len(payload)%4)%4) // one character over a multiple of four
	requireRefused(t, ring, "trailing bits", s.sign(t, s.header(), otherLastBits(payload)), noon, token.ErrMalformed)
	requireRefused(t, ring, "a lone character", s.sign(t, s.header(), lone), noon, token.ErrMalformed)
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
		goodClaims().String(), goodClaims().with("aud", `["`+issuer+`","urn:a"]`).String(),
		slices.Insert(goodClaims(), 9, claim{"cnf", `{"jkt":"` + thumbprintOf("a key") + `"}`}).String(),
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

// requireOurClaims fails when the keyring takes a signed payload that lacks a claim, has one more, or says another
// thing to the standard library than to the keyring.
func requireOurClaims(tb testing.TB, ring *token.Keyring, s *signer, payload string) {
	tb.Helper()
	got, err := ring.VerifyAccess(s.issue(tb, payload), noon)
	if err != nil {
		return
	}
	type actor struct {
		Subject uuid.UUID `json:"sub"`
		Actor   *actor    `json:"act"`
	}
	var read struct {
		Issuer       string          `json:"iss"`
		Agent        uuid.UUID       `json:"agent_id"`
		Subject      uuid.UUID       `json:"sub"`
		Organization uuid.UUID       `json:"org_id"`
		Family       uuid.UUID       `json:"fam"`
		Scopes       []string        `json:"scopes"`
		Client       uuid.UUID       `json:"client_id"`
		Audience     json.RawMessage `json:"aud"`
		Key          struct {
			Thumbprint string `json:"jkt"`
		} `json:"cnf"`
		Actor    *actor      `json:"act"`
		Families []uuid.UUID `json:"act_fam"`
		Session  uuid.UUID   `json:"session_id"`
		Issued   int64       `json:"iat"`
		Expires  int64       `json:"exp"`
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(payload), &read) != nil || json.Unmarshal([]byte(payload), &members) != nil {
		tb.Fatalf("%q was accepted", payload)
	}
	again := token.Access{
		Agent: read.Agent, Organization: read.Organization, Family: read.Family, Scopes: read.Scopes, Issued: time.Unix(read.Issued, 0),
		Client: read.Client, Thumbprint: read.Key.Thumbprint, Session: read.Session,
	}
	want := goodClaims()
	if read.Client != uuid.Nil {
		want = goodClaims()
		if json.Unmarshal(read.Audience, &again.Audience) != nil {
			again.Audience = make([]string, 1)
			_ = json.Unmarshal(read.Audience, &again.Audience[0])
		}
	}
	if again.Thumbprint != "" {
		want = want.and("cnf", "{}")
	}
	lasts := read.Expires - read.Issued
	if again.Delegated() {
		want = want.and("act", "{}").and("act_fam", "[]").and("session_id", "{}")
		if lasts < 3600 {
			again.Lifetime, lasts = time.Duration(lasts)*time.Second, 3600
		}
	}
	for one := read.Actor; one != nil; one = one.Actor {
		again.Actors = append(again.Actors, token.Actor{Agent: one.Subject, Family: read.Families[len(again.Actors)]})
	}
	if !slices.Equal(sortedNames(members), sortedNames(payloadOf(tb, s.issue(tb, want.String())))) {
		tb.Errorf("%q was accepted; want the claims %v", payload, want)
	}
	if !reflect.DeepEqual(got, again) || read.Subject != read.Agent || read.Issuer != issuer || lasts != 3600 {
		tb.Errorf("%q says %+v to one, %+v to the other", payload, got, again)
	}
	text, err := ring.SignAccess(got)
	if errors.Is(err, token.ErrKey) {
		return // our spelling is longer
	}
	requireSays(tb, ring, text, noon, got)
}

// longestScopes are as many and as long as DESIGN §2.4 allows an agent: 64 scopes, 600 characters together, here of
// those that HTML-minded JSON encoders write as six.
func longestScopes() []string {
	scopes := make([]string, 64)
	for i := range scopes {
		scopes[i] = fmt.Sprintf("<&>%06d", i)
	}
	scopes[0] += strings.Repeat("&", 600-len(strings.Join(scopes, "")))
	return scopes
}

// longest returns the token with as much in it as any agent's may have, but for those of token exchange: the longest scopes,
// eight resources of 512 bytes together, and a key.
func longest(a token.Access) token.Access {
	a.Scopes, a.Client, a.Thumbprint = longestScopes(), a.Agent, thumbprintOf("a key")
	a.Audience = nil
	for i := range 8 {
		a.Audience = append(a.Audience, fmt.Sprintf("https://%d.example/", i)+strings.Repeat("r", 46))
	}
	return a
}

func requireErrKey(tb testing.TB, text string, err error) {
	tb.Helper()
	if text != "" || !errors.Is(err, token.ErrKey) {
		tb.Errorf("SignAccess = %d bytes, %v; want ErrKey", len(text), err)
	}
}

func payloadOf(tb testing.TB, text string) map[string]json.RawMessage {
	tb.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(decode(tb, strings.Split(text, ".")[1]), &members); err != nil {
		tb.Fatal(err)
	}
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
