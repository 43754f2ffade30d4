package token

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxAssertionSize is the maximum length of an assertion in bytes. Longer ones are rejected unread.
	MaxAssertionSize = 8192
	// AssertionSkew is how far the clock of an assertion's signer may be from this one.
	AssertionSkew = 30 * time.Second

	// maxKeysTried bounds the signatures that one assertion costs.
	maxKeysTried = 8
	// latestDate, in seconds since 1970, is after every date that is meant.
	latestDate = 1 << 38
)

// Assertion is a JWT that another party has signed, or claims to have signed (RFC 7521, RFC 7523). Nothing in it is known to be
// true before Verify has returned nil. The checks before it cost less and refuse most of what is wrong.
type Assertion struct {
	Type     string // typ, "" for none
	KeyID    string // kid, "" for none
	Issuer   string // iss; this and the next two are "" when they are absent
	Subject  string
	ID       string    // jti
	Audience []string  // aud
	Expires  time.Time // exp; zero when it is absent

	algorithm         string
	notBefore, issued time.Time
	claims            map[string]jsontext.Value
	signed            string // header and claims, as they were sent
	signature         []byte
	signer            *PublicKey // once Verify has returned nil
}

// ParseAssertion reads a JWT in compact form (RFC 7515 §7.1) of at most MaxAssertionSize bytes. It returns ErrMalformed for
// anything else: a crit header, an algorithm that is not in AssertionAlgorithms, a JSON name that is given twice, a registered
// claim of another type.
func ParseAssertion(text string) (*Assertion, error) {
	header, payload, signature, ok := cutJWT(text, MaxAssertionSize)
	if !ok {
		return nil, ErrMalformed
	}
	a := &Assertion{signed: text[:len(header)+1+len(payload)]}
	var err error
	if a.signature, err = decode(signature); err != nil || !a.readHeader(header) || !a.readClaims(payload) {
		return nil, ErrMalformed
	}
	return a, nil
}

// cutJWT returns the three parts of a JWT of at most so many bytes.
func cutJWT(text string, most int) (header, payload, signature string, ok bool) {
	if len(text) > most {
		return "", "", "", false
	}
	header, rest, found := strings.Cut(text, ".")
	payload, signature, more := strings.Cut(rest, ".")
	return header, payload, signature, found && more && !strings.Contains(signature, ".")
}

func (a *Assertion) readHeader(text string) bool {
	var header struct {
		Algorithm string         `json:"alg"`
		Type      string         `json:"typ"`
		KeyID     string         `json:"kid"`
		Critical  jsontext.Value `json:"crit"`
	}
	raw, err := decode(text)
	if err != nil || !isObject(raw) || json.Unmarshal(raw, &header) != nil || header.Critical != nil {
		return false
	}
	a.algorithm, a.Type, a.KeyID = header.Algorithm, header.Type, header.KeyID
	return slices.Contains(AssertionAlgorithms(), a.algorithm)
}

func (a *Assertion) readClaims(text string) bool {
	raw, err := decode(text)
	if err != nil || !isObject(raw) || json.Unmarshal(raw, &a.claims) != nil {
		return false
	}
	var ok [7]bool
	a.Issuer, ok[0] = a.optionalText("iss")
	a.Subject, ok[1] = a.optionalText("sub")
	a.ID, ok[2] = a.optionalText("jti")
	a.Audience, ok[3] = a.audience()
	a.Expires, ok[4] = a.date("exp")
	a.notBefore, ok[5] = a.date("nbf")
	a.issued, ok[6] = a.date("iat")
	return !slices.Contains(ok[:], false)
}

// isObject: the decoder would take null for an empty object.
func isObject(raw []byte) bool { return jsontext.Value(raw).Kind() == '{' }

// Text returns a claim that is a string. Numbers, objects, arrays, true and false are none.
func (a *Assertion) Text(name string) (string, bool) {
	value, has := a.claims[name]
	if !has || value.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// optionalText returns a claim that must be a string if it is there.
func (a *Assertion) optionalText(name string) (string, bool) {
	if _, has := a.claims[name]; !has {
		return "", true
	}
	return a.Text(name)
}

// audience returns aud, which is a string or an array of strings (RFC 7519 §4.1.3).
func (a *Assertion) audience() ([]string, bool) {
	value, has := a.claims["aud"]
	switch {
	case !has:
		return nil, true
	case value.Kind() == '"':
		one, ok := a.Text("aud")
		return []string{one}, ok
	}
	var entries []jsontext.Value
	if value.Kind() != '[' || json.Unmarshal(value, &entries) != nil {
		return nil, false
	}
	audience := make([]string, len(entries))
	for i, entry := range entries {
		if entry.Kind() != '"' || json.Unmarshal(entry, &audience[i]) != nil {
			return nil, false
		}
	}
	return audience, true
}

// date returns a NumericDate, which may have a fraction (RFC 7519 §2); zero when it is absent.
func (a *Assertion) date(name string) (time.Time, bool) {
	value, has := a.claims[name]
	if !has {
		return time.Time{}, true
	}
	var seconds float64
	if value.Kind() != '0' || json.Unmarshal(value, &seconds) != nil || seconds < 0 || seconds > latestDate {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

// HasType says whether typ is one of these or absent. Media types have no case, and may come with "application/"
// (RFC 7515 §4.1.9).
func (a *Assertion) HasType(types ...string) bool {
	given := strings.TrimPrefix(strings.ToLower(a.Type), "application/")
	return a.Type == "" || slices.ContainsFunc(types, func(t string) bool { return strings.ToLower(t) == given })
}

// IsFor says whether one of the audiences is exactly one of the assertion's.
func (a *Assertion) IsFor(audiences ...string) bool {
	return slices.ContainsFunc(audiences, func(wanted string) bool { return slices.Contains(a.Audience, wanted) })
}

// CheckTimes returns ErrExpired when exp has passed, and ErrClaims when it is absent or nbf or iat lie ahead, each by more
// than AssertionSkew (RFC 7523 §3).
func (a *Assertion) CheckTimes(now time.Time) error {
	switch {
	case a.Expires.IsZero(), a.notBefore.After(now.Add(AssertionSkew)), a.issued.After(now.Add(AssertionSkew)):
		return ErrClaims
	case !now.Before(a.Expires.Add(AssertionSkew)):
		return ErrExpired
	}
	return nil
}

// Verify returns nil when one of the keys has signed the assertion. A key is tried if the algorithm fits it, and if its kid is
// the assertion's or one of them has none; at most 8 are. It returns ErrUnknownKey when there is no such key, ErrSignature when
// none of them has signed it. It does not check times and claims.
func (a *Assertion) Verify(keys JWKS) error {
	err := ErrUnknownKey
	tried := 0
	for _, key := range keys {
		method := key.method(a.algorithm)
		if method == nil || a.KeyID != "" && key.ID() != "" && a.KeyID != key.ID() {
			continue
		}
		if tried++; tried > maxKeysTried {
			break
		}
		if method.Verify(a.signed, a.signature, key.public) == nil {
			a.signer = &key
			return nil
		}
		err = ErrSignature
	}
	return err
}

// Signer returns the key that has signed the assertion, if Verify has found it.
func (a *Assertion) Signer() (key PublicKey, verified bool) {
	if a.signer == nil {
		return PublicKey{}, false
	}
	return *a.signer, true
}
