package auditlog_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"strings"
	"testing"

	"remit/internal/auditlog"
	"remit/test/suite"
)

const (
	said     = `{"iss":"https://remit.example","org_id":"o1","seq":9,"hash":"ab","iat":1795380674}`
	typeOfIt = "remit-checkpoint+jwt"
)

var whatItSays = auditlog.Checkpoint{Issuer: "https://remit.example", Organization: "o1", Sequence: 9, Hash: "ab", Issued: 1795380674}

// issuer is a key of an issuer: how it signs, and how its set of keys shows it.
type issuer struct {
	algorithm string
	public    map[string]string
	sign      func(text []byte) []byte
}

func base64url(octets []byte) string { return base64.RawURLEncoding.EncodeToString(octets) }

// issuers have a key of each kind that the service signs with.
func issuers(t *testing.T) map[string]issuer {
	t.Helper()
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	suite.Must(0, err)(t)
	ec := suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	point := suite.Must(ec.PublicKey.Bytes())(t)
	rs := suite.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	return map[string]issuer{
		"Ed25519": {"EdDSA", map[string]string{"kty": "OKP", "crv": "Ed25519", "x": base64url(edPublic)},
			func(text []byte) []byte { return ed25519.Sign(edPrivate, text) }},
		"P-256": {"ES256", map[string]string{"kty": "EC", "crv": "P-256", "x": base64url(point[1:33]), "y": base64url(point[33:])},
			func(text []byte) []byte {
				sum := sha256.Sum256(text)
				r, s, err := ecdsa.Sign(rand.Reader, ec, sum[:])
				suite.Must(0, err)(t)
				return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
			}},
		"RSA": {"RS256", map[string]string{"kty": "RSA", "n": base64url(rs.N.Bytes()), "e": base64url(big.NewInt(int64(rs.E)).Bytes())},
			func(text []byte) []byte {
				sum := sha256.Sum256(text)
				return suite.Must(rsa.SignPKCS1v15(nil, rs, crypto.SHA256, sum[:]))(t)
			}},
	}
}

// checkpoint returns what the issuer signs, under this header.
func (i issuer) checkpoint(algorithm, typ, kid string) string {
	text := base64url([]byte(`{"alg":"`+algorithm+`","typ":"`+typ+`","kid":"`+kid+`"}`)) + "." + base64url([]byte(said))
	return text + "." + base64url(i.sign([]byte(text)))
}

// keys is the issuer's set, in which its key has this id, behind another one.
func (i issuer) keys(t *testing.T, kid string) []byte {
	t.Helper()
	own := maps.Clone(i.public)
	own["kid"] = kid
	return suite.Must(json.Marshal(map[string]any{"keys": []any{map[string]string{"kid": "other", "kty": "oct"}, own}}))(t)
}

func TestACheckpointIsVerifiedByItsKeyAndAForgedOneIsRefused(t *testing.T) {
	t.Parallel()
	all := issuers(t)
	for name, i := range all {
		good := i.checkpoint(i.algorithm, typeOfIt, "k1")
		parts := strings.Split(good, ".")
		for fault, test := range map[string]struct {
			jws  string
			want error
		}{
			"another payload":          {parts[0] + "." + base64url([]byte(strings.Replace(said, "9", "8", 1))) + "." + parts[2], auditlog.ErrSignature},
			"no signature":             {parts[0] + "." + parts[1] + ".", auditlog.ErrSignature},
			"half a signature":         {good[:len(good)-len(parts[2])/2], auditlog.ErrSignature},
			"algorithm none":           {i.checkpoint("none", typeOfIt, "k1"), auditlog.ErrSignature},
			"another algorithm":        {i.checkpoint("HS256", typeOfIt, "k1"), auditlog.ErrSignature},
			"an unknown key":           {i.checkpoint(i.algorithm, typeOfIt, "k2"), auditlog.ErrSignature},
			"the id of another key":    {i.checkpoint(i.algorithm, typeOfIt, "other"), auditlog.ErrSignature},
			"a token":                  {i.checkpoint(i.algorithm, "at+jwt", "k1"), auditlog.ErrCheckpoint},
			"two parts":                {parts[0] + "." + parts[1], auditlog.ErrCheckpoint},
			"four parts":               {good + ".", auditlog.ErrCheckpoint},
			"a header that is no JSON": {base64url([]byte("x")) + "." + parts[1] + "." + parts[2], auditlog.ErrCheckpoint},
			"a line end in it":         {strings.Replace(good, ".", ".\n", 1), auditlog.ErrSignature},
			"padding":                  {good + "=", auditlog.ErrCheckpoint},
			"nothing":                  {"", auditlog.ErrCheckpoint},
		} {
			if got, err := auditlog.VerifyCheckpoint(test.jws, i.keys(t, "k1")); !errors.Is(err, test.want) || got != (auditlog.Checkpoint{}) {
				t.Errorf("%s, %s: %+v, %v, want %v", name, fault, got, err, test.want)
			}
		}
		for other, own := range all {
			if got, err := auditlog.VerifyCheckpoint(good, own.keys(t, "k1")); (err == nil) != (other == name) || err == nil && got != whatItSays {
				t.Errorf("signed by %s, verified by %s: %+v, %v", name, other, got, err)
			}
		}
	}
}

// Keys that are none must not end the program.
func TestBadKeysVerifyNothing(t *testing.T) {
	t.Parallel()
	for name, i := range issuers(t) {
		jws := i.checkpoint(i.algorithm, typeOfIt, "k1")
		for member := range i.public {
			for _, value := range []string{"", "AA", "!", base64url(make([]byte, 32)), base64url([]byte(strings.Repeat("\xff", 300)))} {
				bad := issuer{i.algorithm, maps.Clone(i.public), i.sign}
				bad.public[member] = value
				if _, err := auditlog.VerifyCheckpoint(jws, bad.keys(t, "k1")); !errors.Is(err, auditlog.ErrSignature) {
					t.Errorf("%s with %s %q: %v", name, member, value, err)
				}
			}
		}
		for _, set := range []string{"", "x", "[]", `{"keys":{}}`} {
			if _, err := auditlog.VerifyCheckpoint(jws, []byte(set)); err == nil {
				t.Errorf("%s: it is verified by %q", name, set)
			}
		}
	}
}

func TestAnExportMustEndWithItsCheckpoint(t *testing.T) {
	t.Parallel()
	end := auditlog.Checkpoint{Sequence: 9, Hash: "ab"}
	for name, test := range map[string]struct {
		export     auditlog.Result
		checkpoint auditlog.Checkpoint
		want       error
	}{
		"it does":                       {auditlog.Result{First: 4, Last: 9, Hash: "ab"}, end, nil},
		"the last are missing":          {auditlog.Result{First: 4, Last: 8, Hash: "aa"}, end, auditlog.ErrMismatch},
		"it has more":                   {auditlog.Result{First: 4, Last: 10, Hash: "ac"}, end, auditlog.ErrMismatch},
		"the last was changed":          {auditlog.Result{First: 4, Last: 9, Hash: "ad"}, end, auditlog.ErrMismatch},
		"neither has an event":          {auditlog.Result{}, auditlog.Checkpoint{}, nil},
		"the export alone has none":     {auditlog.Result{}, end, auditlog.ErrMismatch},
		"the checkpoint alone has none": {auditlog.Result{First: 1, Last: 1, Hash: "ab"}, auditlog.Checkpoint{}, auditlog.ErrMismatch},
	} {
		if err := test.export.Check(test.checkpoint); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}
